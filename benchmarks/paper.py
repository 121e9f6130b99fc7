"""The tables of the paper, as printed.

"LHT: Statistically-Driven Oblique Decision Trees for Interpretable Classification" by
Hongyi Li, Jun Xu and William Ward Armstrong. Accuracies are in percent. Misprints are kept:
table 1 has n = 67757 for connect4 (67557), 784 for blood_transfusion (748) and 6898 for
wine_white (4898); table 2 has m = 3 for banknote (4).
"""

from __future__ import annotations

import csv
import io
from typing import Any

# Accuracy of single oblique trees, and of LHT.
TABLE_1 = """\
dataset,n,m,k,CART,CART_std,TAO,TAO_std,DGT,DGT_std,DTSemNet,DTSemNet_std,LHT,LHT_std
protein,24387,357,3,57.5,0.0,68.4,0.2,67.8,0.4,68.6,0.2,69.1,0.8
satimage,6435,36,6,84.1,0.3,87.4,0.3,86.6,0.9,87.5,0.5,90.9,0.6
segment,2310,19,7,94.2,0.8,95.0,0.8,95.8,1.1,96.1,0.5,97.0,0.7
pendigits,10992,16,10,89.9,0.3,96.0,0.3,96.3,0.2,97.0,0.3,97.1,0.3
connect4,67757,126,3,74.0,0.6,81.2,0.2,79.5,0.2,82.0,0.3,82.1,0.2
mnist,70000,784,10,85.5,0.1,95.0,0.1,94.0,0.3,96.1,0.1,97.4,0.3
sensit,98528,100,3,78.3,0.0,82.5,0.1,83.6,0.2,84.2,0.1,86.6,0.1
letter,20000,16,26,70.1,0.1,87.4,0.4,86.1,0.7,89.1,0.2,95.0,0.2
balance_scale,625,4,3,74.9,3.6,77.4,3.1,88.6,1.7,90.2,2.2,90.3,0.7
banknote,1372,4,2,93.6,2.2,96.6,1.3,99.8,0.4,99.8,0.4,99.8,0.1
blood_transfusion,784,4,2,77.1,1.8,76.9,2.1,78.3,2.4,78.5,1.7,79.5,2.4
acute_inflammation_1,120,6,2,100,0,99.7,1.2,100,0,100,0,100,0
acute_inflammation_2,120,6,2,99.0,2.6,99.0,2.6,100,0,100,0,100,0
car_evaluation,1728,6,4,84.3,1.4,84.5,1.5,92.1,2.4,93.3,2.2,97.1,1.0
breast_cancer_wisconsin,699,9,2,94.7,1.7,94.7,1.7,97.2,1.0,97.2,1.3,97.3,1.0
avila,20867,10,12,54.0,1.3,55.8,0.8,59.7,1.8,62.2,1.4,73.2,0.3
wine_red,1599,11,6,55.9,2.3,56.9,2.5,56.6,1.4,58.6,2.2,63.1,0.9
wine_white,6898,11,7,52.0,1.3,52.3,1.5,52.1,1.6,53.5,1.4,61.7,0.9
dry_bean,13611,16,7,80.5,1.9,83.2,1.5,89.0,1.6,91.4,0.5,92.5,0.3
climate_crashes,540,18,2,91.8,1.8,90.6,2.2,92.4,2.6,92.9,1.4,93.1,2.4
sonar,208,60,2,70.6,6.6,70.9,5.8,80.8,4.5,82.1,5.1,82.5,5.8
optdigits,5620,64,10,53.2,3.2,64.6,6.5,91.9,1.0,93.3,1.0,95.5,0.6
"""

# Accuracy of ensembles, and of LHT.
TABLE_2 = """\
dataset,n,m,k,RF,RF_std,XGBoost,XGBoost_std,CatBoost,CatBoost_std,LightGBM,LightGBM_std,LHT,LHT_std
protein,24387,357,3,48.2,0.6,48.8,0.6,48.8,0.6,48.3,0.6,69.1,0.8
satimage,6435,36,6,90.2,0.7,90.2,0.7,90.8,0.7,90.8,0.6,90.9,0.6
segment,2310,19,7,96.7,0.8,97.8,0.7,96.7,0.9,97.4,0.7,97.0,0.7
pendigits,10992,16,10,96.3,0.3,96.4,0.3,97.1,0.3,96.4,0.3,97.1,0.3
connect4,67757,126,3,78.5,0.4,85.8,0.3,84.1,0.3,87.7,0.3,82.1,0.2
mnist,70000,784,10,96.6,0.2,97.5,0.2,96.9,0.2,98.0,0.1,97.4,0.3
sensit,98528,100,3,85.9,0.2,87.5,0.2,87.3,0.2,87.3,0.3,86.6,0.1
letter,20000,16,26,94.9,0.3,95.9,0.3,96.1,0.3,96.7,0.3,95.0,0.2
wine,178,13,3,97.5,1.1,96.8,1.1,97.0,0.9,97.3,0.8,97.8,1.6
seeds,210,7,3,91.1,1.3,93.4,1.4,93.1,1.6,92.6,1.5,94.5,2.1
wdbc,569,30,2,95.7,1.3,96.6,0.7,96.6,1.3,96.1,0.6,98.2,1.1
banknote,1372,3,2,98.9,0.2,98.9,0.2,99.5,0.2,99.2,0.2,99.8,0.2
rice,3810,7,2,92.2,0.3,92.2,0.4,92.7,0.4,92.2,0.3,91.3,0.5
spambase,4601,57,2,93.2,0.3,94.2,0.3,94.1,0.3,94.2,0.3,93.8,0.6
eeg_eye_state,14980,14,2,91.1,0.2,94.6,0.3,92.6,0.4,92.4,0.3,94.8,0.3
magic,19020,10,2,84.4,0.2,87.8,0.2,87.5,0.2,87.8,0.2,86.1,0.3
skin,245057,3,2,99.84,0.01,99.93,0.01,99.89,0.01,99.92,0.01,99.97,0.01
"""

# Training time in seconds.
TABLE_3 = """\
dataset,n,m,k,RF,XGBoost,CatBoost,LightGBM,LHT,LHT_longest_single_tree
satimage,6435,36,6,0.3750,0.6689,23.5407,0.5876,2.5115,0.0291
segment,2310,19,7,0.2816,0.5869,4.1902,0.1424,0.0312,0.0092
pendigits,10992,16,10,1.2444,2.4511,90.2304,1.0643,2.5454,0.0272
"""

# Wine: accuracy by beta.
TABLE_4 = """\
beta,accuracy,std
0,97.6,2.8
0.25,97.8,1.6
0.5,96.8,2.4
0.75,93.0,3.2
1,94.1,4.2
"""

# LHT's settings.
TABLE_5 = """\
dataset,gamma_and_min_samples,beta_prime_or_beta,trees_per_class,forest_rate,alpha,normalized
protein,80,0,100,0.6,0,True
satimage,5,0,30,0.8,0,True
segment,2,0,1,1.0,0,True
pendigits,2,0,20,0.8,0,True
connect4,7,0,40,0.6,0,True
sensit,6,0,100,0.6,0,True
letter,2,0.8,50,0.8,0,True
balance_scale,3,0,1,1.0,0,True
blood_transfusion,5,0,150,0.3,0,True
acute_inflammation_1,2,0,1,1.0,0,True
acute_inflammation_2,2,0,1,1.0,0,True
car_evaluation,3,0,100,0.8,0,True
breast_cancer_wisconsin,2,0,50,0.8,0,True
avila,5,0,10,0.8,0,True
wine_red,2,0,1,1.0,0,True
wine_white,2,0,1,1.0,0,True
dry_bean,2,0,1,1.0,0,True
climate_crashes,2,0,1,1.0,0,True
sonar,2,0,10,0.8,0,True
optdigits,4,0,10,0.8,0,True
wine,2,0.25,1,1.0,0,True
seeds,2,0.3,10,1.0,0,True
wdbc,2,0,1,1.0,0,True
banknote,2,0.8,2,1.0,0,True
rice,3,0,1,1.0,0,True
spambase,4,0,25,0.8,0,True
eeg_eye_state,2,0.3,25,1.0,0,True
magic,3,0,50,1.0,0,True
skin,2,0,50,0.8,0,True
mnist,6,0.8,20,1.0,900,False
"""

# The peers' settings.
TABLE_6 = """\
dataset,method,max_depth,learning_rate,n_estimators
protein,RF,15,,150
protein,XGBoost,5,0.1,200
protein,CatBoost,15,0.1,100
protein,LightGBM,15,0.1,37
satimage,RF,15,,50
satimage,XGBoost,5,0.1,130
satimage,CatBoost,7,0.1,385
satimage,LightGBM,15,0.1,72
segment,RF,15,,100
segment,XGBoost,10,0.1,200
segment,CatBoost,5,0.1,200
segment,LightGBM,5,0.1,37
pendigits,RF,15,,150
pendigits,XGBoost,5,0.1,300
pendigits,CatBoost,10,0.1,200
pendigits,LightGBM,5,0.1,106
connect4,RF,15,,150
connect4,XGBoost,10,0.1,200
connect4,CatBoost,10,0.1,200
connect4,LightGBM,10,0.1,110
mnist,RF,15,,150
mnist,XGBoost,15,0.1,200
mnist,CatBoost,10,0.1,200
mnist,LightGBM,10,0.1,138
sensit,RF,15,,100
sensit,XGBoost,10,0.1,200
sensit,CatBoost,10,0.1,200
sensit,LightGBM,10,0.05,200
letter,RF,15,,150
letter,XGBoost,10,0.1,200
letter,CatBoost,10,0.1,200
letter,LightGBM,10,0.1,100
seeds,RF,6,,20
seeds,XGBoost,7,0.1,50
seeds,CatBoost,7,0.1,70
seeds,LightGBM,6,0.1,50
wdbc,RF,6,,20
wdbc,XGBoost,6,0.1,50
wdbc,CatBoost,8,0.05,100
wdbc,LightGBM,7,0.05,100
banknote,RF,6,,25
banknote,XGBoost,6,0.1,50
banknote,CatBoost,8,0.1,70
banknote,LightGBM,6,0.1,50
rice,RF,7,,20
rice,XGBoost,6,0.1,60
rice,CatBoost,9,0.1,80
rice,LightGBM,6,0.1,50
spambase,RF,10,,30
spambase,XGBoost,9,0.1,50
spambase,CatBoost,8,0.1,60
spambase,LightGBM,9,0.1,50
eeg_eye_state,RF,15,,50
eeg_eye_state,XGBoost,10,0.1,150
eeg_eye_state,CatBoost,15,0.1,150
eeg_eye_state,LightGBM,15,0.1,200
magic,RF,6,,50
magic,XGBoost,10,0.1,50
magic,CatBoost,10,0.1,100
magic,LightGBM,10,0.1,50
skin,RF,10,,100
skin,XGBoost,6,0.1,100
skin,CatBoost,10,0.1,100
skin,LightGBM,6,0.1,100
"""


def read_table(text: str) -> list[dict[str, Any]]:
    """Return the rows of a table; what reads as a number is one, what is empty is None."""

    def convert(word: str) -> Any:
        if word in ("True", "False", ""):
            return {"True": True, "False": False, "": None}[word]
        try:
            return int(word)
        except ValueError:
            try:
                return float(word)
            except ValueError:
                return word

    return [
        {name: convert(word) for name, word in row.items()}
        for row in csv.DictReader(io.StringIO(text))
    ]


def read_accuracy(model: str) -> dict[str, tuple[float, float]]:
    """Return accuracy and deviation of a model's column in tables 1 and 2, by data set."""
    return {
        row["dataset"]: (float(row[model]), float(row[f"{model}_std"]))
        for table in (TABLE_1, TABLE_2)
        for row in read_table(table)
        if model in row
    }


def read_forest(name: str) -> dict[str, Any]:
    """Return LHT's parameters of a data set in table 5, as `LHForestClassifier` names them."""
    row = next(row for row in read_table(TABLE_5) if row["dataset"] == name)
    share = row["forest_rate"]
    return {
        "gamma": row["gamma_and_min_samples"],
        "min_samples_split": row["gamma_and_min_samples"],
        "beta": row["beta_prime_or_beta"],
        "n_estimators": row["trees_per_class"],
        "max_samples": None if share == 1 else share,
        "alpha": row["alpha"],
        "standardize": row["normalized"],
    }


def read_peer(name: str, model: str) -> dict[str, Any] | None:
    """Return depth, learning rate and number of trees of a peer in table 6; None if absent."""
    for row in read_table(TABLE_6):
        if (row["dataset"], row["method"]) == (name, model):
            return {key: row[key] for key in ("max_depth", "learning_rate", "n_estimators")}
    return None
