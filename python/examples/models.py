# %% [markdown]
# What a policy predicts for a collective, by size, beside what was measured when it was tuned. Run it as a script, or cell by cell:
#
#     python models.py policy.toml bcast picture.png
# %%
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import collwise

path, collective, picture = (sys.argv[1:] + ["policy.toml", "bcast", "models.png"][len(sys.argv) - 1 :])[:3]
policy = collwise.Policy(path)

# %% Predictions over sizes, and what the MPI library's own took there
prediction = policy.predict([2**k for k in range(0, 23)], collective)

# %% What is done changes with the size
rows = policy.rows(collective)

# %% The picture
figure, axes = plt.subplots(figsize=(8, 5))
axes.loglog(prediction.bytes, prediction.predicted_s * 1e3, label="predicted by the models")
axes.loglog(prediction.bytes, prediction.replayed_s * 1e3, "x", label="simulated, every message")
if np.isfinite(prediction.native_s).any():
    axes.loglog(prediction.bytes, prediction.native_s * 1e3, "--", label="the MPI library's own, measured")
for row in rows[1:]:
    axes.axvline(row.from_bytes, color="0.9", zorder=0)
axes.set_xlabel("bytes")
axes.set_ylabel("milliseconds")
axes.set_title(f"{collective} by {path}")
axes.legend()
figure.savefig(picture, dpi=120)
print(f"{len(rows)} rows; written to {picture}")
