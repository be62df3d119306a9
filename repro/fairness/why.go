package fairness

// deteriorationWhy is what we believe where noise does not make models less fair.
const deteriorationWhy = "We believe that these models have nothing to lose by noise: where each group has a model that fits it, or one model serves the majority alone, training ends where it ends without noise. Tested by the figures of this setting, which stay within their spread at every nu. The loss alone is not it: setting A trained with RMSE, as B is, does not deteriorate either (40 seeds); B, whose x are three times as large, does with two models."

// loansWhy and picturesWhy are what we believe where two models are not fairer than one, and
// parityWhy where pictures are judged by demographic parity.
const (
	loansWhy    = "We believe that the largest noise takes from two models what they gain by this metric in this reading of the data. Tested by the figures at smaller noise, where two models lead, and by the rows on noise, which say how much their difference rises."
	picturesWhy = "We believe that the difference is below what so few seeds tell, and that the metric rests on few of the minority's writers. Tested by more seeds: of the twelve rows of this kind at full scale none agreed with three seeds and eight with six (2026-11-18); --seeds gives more."
	parityWhy   = "Lower is not better by this metric here: the groups' base rates differ by the definition of the labels, so that a perfect predictor has a difference of its own, to which better models come nearer. Tested by the row on a perfect predictor, and by six seeds instead of three, which change nothing."
)

// tradeWhy is what we believe where noise takes more than half of what two models gain.
const tradeWhy = "We believe that two models gain little by this metric here, or that the largest noise takes it in this reading of the data. Tested by the figures at smaller noise, and by the row on the minority, whose share of wrong answers rises with the noise where the trade-off is not small."

// minorityWhy is what we believe where noise does not take influence from the minority.
const minorityWhy = "We believe that the minority has a model of its own that noise does not move: clients of the other group do not choose it, and the average over its clients is as good as without. Tested by the rows on who misses what."
