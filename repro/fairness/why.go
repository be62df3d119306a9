package fairness

// deteriorationWhy is what we believe where noise does not make models less fair.
const deteriorationWhy = "We believe that these models have nothing to lose by noise: where each group has a model that fits it, or one model serves the majority alone, training ends where it ends without noise. Tested by the figures of this setting, which stay within their spread at every nu."
