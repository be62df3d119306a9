package account

import "testing"

func BenchmarkEpsilonRDP(b *testing.B) {
	for name, c := range map[string][3]float64{
		"mnist": {1.1, 512.0 / 60000, 1180}, "low-noise": {0.5, 0.1, 10000}, "small-rate": {1, 1e-4, 10000}, "silo": {4, 0.0734, 5213},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				rdpEpsilon(b, exampleTerms, dpsgd(c[0], c[1], int64(c[2])), 1e-5)
			}
		})
	}
}

func BenchmarkEpsilonPLD(b *testing.B) {
	for name, c := range map[string][3]float64{
		"mnist": {1.1, 512.0 / 60000, 1180}, "low-noise-10k": {0.5, 0.1, 10000}, "small-rate-10k": {0.5, 1e-4, 10000},
		"10k": {1, 0.01, 10000}, "silo-10k": {4, 0.0734, 10000}, "1e9": {50, 0.001, 1e9},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				pldBounds(b, exampleTerms, dpsgd(c[0], c[1], int64(c[2])), 1e-5)
			}
		})
	}
}

func BenchmarkCalibrate(b *testing.B) {
	for name, c := range map[string][3]float64{"mnist": {512.0 / 60000, 1180, 3}, "silo": {0.0734, 5213, 0.5}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := poissonTraining(c[0], int64(c[1])).WithNoiseFor(MethodRDP, c[2], 1e-5); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
