"""From a table to predictions in Python: run it as a script, or cell by cell in an editor
that knows "# %%". It needs numpy and the program coterie.
"""

# %% [markdown]
# Everything happens in a folder that goes away at the end.

# %%
import csv
import pathlib
import tempfile

import numpy as np

import coterie

place = tempfile.TemporaryDirectory()
folder = pathlib.Path(place.name)

# %% [markdown]
# ## Some data
# Invented: six hospitals, in which age and smoking count differently. Some cells are empty.

# %%
draw = np.random.default_rng(1)
with open(folder / "patients.csv", "w", newline="") as f:
    out = csv.writer(f)
    out.writerow(["hospital", "age", "bmi", "ward", "smoker", "readmitted"])
    for h in range(6):
        for _ in range(300):
            age, smoker, ward = draw.uniform(20, 95), draw.random() < 0.3, draw.choice(["A", "B", "C"])
            score = (0.5 + 0.2 * h) * (age - 60) / 15 + 1.5 * smoker + (ward == "B") - 0.8
            bmi = "" if draw.random() < 0.1 else round(draw.normal(27, 5), 1)
            ill = draw.random() < 1 / (1 + np.exp(-score))
            out.writerow([f"h{h}", round(age, 1), bmi, ward, "yes" if smoker else "no", "yes" if ill else "no"])

# %% [markdown]
# ## What is public about it
# Ranges and lists are statements, not statistics: they must not be read off the data.

# %%
(folder / "run.yaml").write_text("""
seed: 7
data:
  kind: table
  source: {path: patients.csv, client: hospital}
  target: readmitted
  task: yes/no
  features:
    - {name: age, type: number, range: [0, 120]}
    - {name: bmi, type: number, range: [10, 60], missing: indicator}
    - {name: ward, type: category, values: [A, B, C]}
    - {name: smoker, type: yes/no}
algorithm: {kind: mr-mtl, mode: sound, rounds: 40, local: {step: 0.5}}
privacy: {epsilon: 4, delta: 1.0e-5, public_size: 200}
""")

# %% [markdown]
# ## Train
# Every hospital gets a model of its own, drawn to the others'; each of its patients is
# protected by differential privacy.

# %%
result = coterie.run(folder / "run.yaml", out=folder / "result")
print("claim:", result.privacy.claim, "epsilon:", round(result.privacy.epsilon, 3))
print("AUC of held-out rows:", round(result.metrics.auc.value, 3))
for p in result.participants:
    print(f"  {p.name}: {p.examples} rows trained, {p.test_examples} held out, error {p.error:.3f}")

# %% [markdown]
# A wrong file is told with all its faults.

# %%
try:
    coterie.run(folder / "run.yaml", out=folder / "wrong", algorithm__rounds=-1)
except coterie.RunError as err:
    print("refused:", [fault["path"] for fault in err.faults])

# %% [markdown]
# ## Predict
# The folder has the models and how rows become inputs. Cells may be text or numbers.

# %%
model = result.model()
print(model)
patients = [
    {"age": 81, "bmi": None, "ward": "B", "smoker": "yes"},
    {"age": 33, "bmi": 24.5, "ward": "A", "smoker": "no"},
]
for client in ("h0", "h5"):
    print(client, np.round(model.predict(patients, client=client), 3), model.classify(patients, client=client))
print("a hospital that was not there:", np.round(model.predict(patients), 3))

# %% [markdown]
# What the models hold: weights by input.

# %%
for name, weight in zip([*model.inputs, "intercept"], model.parameters(client="h5")):
    print(f"  {name:12} {weight:6.2f}")

# %% [markdown]
# A whole file, too.

# %%
columns = coterie.read_csv(folder / "patients.csv")
old = model.predict(columns, client="h0")
print("rows:", len(old), "mean probability:", round(float(old.mean()), 3))
