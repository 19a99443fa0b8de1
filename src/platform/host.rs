//! Parameters of hosts, irregularities of their TCP, and noise.

use crate::units::{self, Seconds};
use serde::{Deserialize, Serialize};

/// What a host's processor and network port cost per message and per byte. All optional, so that a group states only what
/// differs from its platform.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostParameters {
    /// CPU time of sending, per message.
    #[serde(default, deserialize_with = "units::de_seconds_option", skip_serializing_if = "Option::is_none")]
    pub send_overhead_s: Option<Seconds>,
    /// CPU time of sending, per byte.
    #[serde(default, deserialize_with = "units::de_seconds_option", skip_serializing_if = "Option::is_none")]
    pub send_overhead_s_per_byte: Option<Seconds>,
    /// CPU time of receiving, per message.
    #[serde(default, deserialize_with = "units::de_seconds_option", skip_serializing_if = "Option::is_none")]
    pub recv_overhead_s: Option<Seconds>,
    /// CPU time of receiving, per byte.
    #[serde(default, deserialize_with = "units::de_seconds_option", skip_serializing_if = "Option::is_none")]
    pub recv_overhead_s_per_byte: Option<Seconds>,
    /// Least time between the starts of two messages at the port.
    #[serde(default, deserialize_with = "units::de_seconds_option", skip_serializing_if = "Option::is_none")]
    pub gap_s: Option<Seconds>,
    /// Port time per byte: the inverse of the port's bandwidth.
    #[serde(default, deserialize_with = "units::de_seconds_option", skip_serializing_if = "Option::is_none")]
    pub gap_s_per_byte: Option<Seconds>,
    /// CPU time of copying a byte in memory; nothing if it is not stated.
    #[serde(default, deserialize_with = "units::de_seconds_option", skip_serializing_if = "Option::is_none")]
    pub copy_s_per_byte: Option<Seconds>,
    /// CPU time of combining a byte with another one, as a reduction does; nothing if it is not stated.
    #[serde(default, deserialize_with = "units::de_seconds_option", skip_serializing_if = "Option::is_none")]
    pub combine_s_per_byte: Option<Seconds>,
    /// Messages above this size wait for a handshake (rendezvous) before their data moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eager_limit_bytes: Option<usize>,
}

impl HostParameters {
    /// True if nothing is stated.
    pub fn is_empty(&self) -> bool {
        *self == HostParameters::default()
    }

    /// These parameters, with another's where these are silent.
    pub fn or(&self, other: &HostParameters) -> HostParameters {
        HostParameters {
            send_overhead_s: self.send_overhead_s.or(other.send_overhead_s),
            send_overhead_s_per_byte: self.send_overhead_s_per_byte.or(other.send_overhead_s_per_byte),
            recv_overhead_s: self.recv_overhead_s.or(other.recv_overhead_s),
            recv_overhead_s_per_byte: self.recv_overhead_s_per_byte.or(other.recv_overhead_s_per_byte),
            gap_s: self.gap_s.or(other.gap_s),
            gap_s_per_byte: self.gap_s_per_byte.or(other.gap_s_per_byte),
            copy_s_per_byte: self.copy_s_per_byte.or(other.copy_s_per_byte),
            combine_s_per_byte: self.combine_s_per_byte.or(other.combine_s_per_byte),
            eager_limit_bytes: self.eager_limit_bytes.or(other.eager_limit_bytes),
        }
    }
}

/// Irregularities of TCP on switched Ethernet, as Lastovetsky, Rychkov and O'Flynn (EuroPVM/MPI 2008) describe them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Irregularities {
    /// Above this size (S) a sender's transfers no longer overlap, and each holds the port for `scatter_leap_s` more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scatter_leap_bytes: Option<usize>,
    /// The leap.
    #[serde(default, deserialize_with = "units::de_seconds")]
    pub scatter_leap_s: Seconds,
    /// Messages from this size (M1) ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gather_low_bytes: Option<usize>,
    /// ... to this size (M2), which meet others at one receiver, may be lost and sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gather_high_bytes: Option<usize>,
    /// The time until a lost message is sent again.
    #[serde(default, deserialize_with = "units::de_seconds")]
    pub gather_escalation_s: Seconds,
    /// The share of those messages that is lost.
    #[serde(default)]
    pub gather_escalation_share: f64,
}

/// Noise of measured times, drawn per repetition: other users, daemons, frequency changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// Every time is multiplied by 1 + |N(0, sigma)|.
    #[serde(default)]
    pub sigma: f64,
    /// The share of repetitions that are disturbed gravely.
    #[serde(default)]
    pub outlier_share: f64,
    /// Such a repetition takes this many times longer.
    #[serde(default)]
    pub outlier_factor: f64,
}
