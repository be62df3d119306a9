package config

// siloData sets what depends on the data alone: the settings of paper 002,
// appendices B.1 and B.4, and deltas and steps of its authors' published scripts
// (none for CIFAR-10: below n^-1.1, as the paper asks).
func siloData(r *Run) {
	d, m, local, p := &r.Data, &r.Model, &r.Algorithm.Local, &r.Privacy
	d.TestShare, d.Standardise = 0.2, "silo"
	local.Batch, p.Clip = 32, 1
	network := func(name string) { *m = Model{Kind: "network", Name: name} }
	switch d.Kind {
	case "vehicle":
		d.TestShare = 0.25
		local.Batch, p.Clip, p.Delta = 64, 6, 1e-7
	case "gleam":
		d.TestShare = 0.25
		local.Batch, p.Clip, p.Delta = 64, 6, 1e-4
	case "adni":
		d.TestShare = 0.25
		local.Batch, p.Clip, p.Delta = 64, 0.5, 1e-4
		network("cross-silo-adni")
	case "rotated-mnist":
		d.Silos, d.MaskSize = 40, 2
		local.Batch, local.Step, p.Clip, p.Delta = 100, 0.1, 1, 1e-7
		network("cross-silo-mnist")
	case "cifar10-silos":
		d.Silos, d.SiloClasses = 30, 5
		local.Batch, local.Step, p.Clip, p.Delta = 100, 0.1, 8, 1e-4
		network("cross-silo-cifar")
	}
	if d.Kind == "rotated-mnist" || d.Kind == "cifar10-silos" {
		local.Loss = "cross-entropy"
	}
}
