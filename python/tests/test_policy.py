"""Policies, predictions and samples. ``test.sh`` runs this where the command is, with the repository's platforms in ``PLATFORMS``."""

import os
import tempfile
import unittest
from pathlib import Path

import numpy as np

import collwise

PLATFORM = Path(os.environ["PLATFORMS"]) / "icluster2.toml"


class Policies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = Path(cls.folder.name)
        cls.samples = folder / "measured.samples.jsonl"
        cls.policy = collwise.tune(PLATFORM, folder / "policy.toml", "--samples", str(cls.samples))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_rows_begin_at_nothing_and_rise(self):
        rows = self.policy.rows()
        self.assertEqual(rows[0].from_bytes, 0)
        self.assertTrue(all(a.from_bytes < b.from_bytes for a, b in zip(rows, rows[1:])))

    def test_predictions_are_those_of_the_command(self):
        sizes, seconds = prediction = self.policy.predict(["1KiB", 65536, "1MiB"])
        self.assertEqual(list(sizes), [1024, 65536, 1048576])
        self.assertTrue(np.all(np.diff(seconds) > 0))
        np.testing.assert_allclose(prediction.predicted_s, prediction.replayed_s, rtol=0.05)
        explained = self.policy.explain("64KiB")
        self.assertEqual((explained.bytes, explained.collective), (65536, "bcast"))
        self.assertTrue(explained.form)

    def test_a_binomial_tree_takes_the_closed_form(self):
        # Hockney: log2(P) messages one after the other
        seconds = collwise.predict("hockney", {"alpha_s": 1e-4, "beta_s_per_byte": 1e-8}, 8, "binomial", [1000, 10000])
        np.testing.assert_allclose(seconds, [3 * (1e-4 + 1e-5), 3 * (1e-4 + 1e-4)], rtol=1e-9)

    def test_samples_are_arrays(self):
        samples = collwise.read_samples(self.samples)
        trips = samples.of("round_trip")
        self.assertGreater(samples.kinds()["round_trip"], 10)
        self.assertTrue(np.all(trips["median_s"] > 0) and np.all(trips["min_s"] <= trips["max_s"]))
        self.assertTrue({"a", "b", "out", "back"} <= set(trips.dtype.names))
        with self.assertRaisesRegex(KeyError, "round_trip"):
            samples.of("nothing")

    def test_what_is_wrong_is_said(self):
        with self.assertRaisesRegex(collwise.Error, "none.toml"):
            collwise.Policy("none.toml")
        with self.assertRaisesRegex(collwise.Error, "64KiBB"):
            self.policy.explain("64KiBB")
        with self.assertRaisesRegex(collwise.Error, "none.jsonl"):
            collwise.read_samples("none.jsonl")
        with self.assertRaisesRegex(collwise.Error, "line 1"):
            collwise.read_samples(self.policy.path)


if __name__ == "__main__":
    unittest.main()
