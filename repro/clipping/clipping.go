// Package clipping reproduces thesis 001's chapter on the clip that is learned in training.
package clipping

import "github.com/coterie-fl/coterie/repro/lab"

// Experiments are listed in this order.
var Experiments = []lab.Experiment{
	digits.experiment("clipping-mnist", "The clip learned in training: digits", "thesis 001, tables 3.8 and 3.11, figures 3.4, 3.7 and 3.10", "5 min", "6 h", simulate),
	clothes.experiment("clipping-fashion", "The clip learned in training: an autoencoder of clothes", "thesis 001, tables 3.9 and 3.12, figures 3.5, 3.8 and 3.11", "5 min", "6 h", simulate),
	news.experiment("clipping-agnews", "The clip learned in training: news", "thesis 001, tables 3.10 and 3.13, figures 3.6, 3.9 and 3.12", "2 min", "1 h", simulate),
	cosine,
	split,
}

// method is one of the thesis's, by its name there.
type method string

// The methods that tables 3.8 to 3.13 compare.
const (
	online    method = "Online"
	threshold method = "FixedThreshold"
	quantile  method = "FixedQuantile"
	adamWOSM  method = "AdamWOSM"
	noDP      method = "NoDP"
)

// private are the methods in the order of the tables.
var private = []method{online, threshold, quantile, adamWOSM}

// Settings of all runs. The thesis states no delta; s_b of FixedQuantile is Andrew et al.'s
// twentieth of the batch, the rule's own default.
const (
	batch     = 512
	delta     = 1e-5
	startClip = 0.1    // of Online and FixedQuantile
	adamStep  = 1e-3   // of AdamWOSM
	rate      = 0.0025 // of Online, for clip and step
)
