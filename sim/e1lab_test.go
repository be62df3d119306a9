package sim

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
)

func TestE1Lab(t *testing.T) {
	spec := os.Getenv("E1LAB")
	if spec == "" {
		t.Skip()
	}
	text, err := os.ReadFile("../examples/school.yaml")
	if err != nil {
		t.Fatal(err)
	}
	folder := data.NewFolder(os.Getenv("COTERIE_DATA"))
	seeds := 5
	if s := os.Getenv("E1SEEDS"); s != "" {
		fmt.Sscan(s, &seeds)
	}
	for _, one := range strings.Split(spec, ";") {
		set := strings.Fields(one)
		var all []float64
		var lam float64
		for seed := 1; seed <= seeds; seed++ {
			run, err := config.Resolve(text, append(set, fmt.Sprintf("seed=%d", seed)), Checks()...)
			if err != nil {
				t.Fatal(err)
			}
			run.Algorithm.Stop.Every = 50
			s, err := NewSilos(run, folder)
			if err != nil {
				t.Fatal(err)
			}
			for {
				more, err := s.Step()
				if err != nil {
					t.Fatal(err)
				}
				if !more {
					break
				}
			}
			_, m := s.Round()
			all = append(all, m)
			if n := len(s.record.Lambda); n > 0 {
				lam = s.record.Lambda[n-1]
			}
			s.Close()
		}
		mean, sq := 0.0, 0.0
		for _, v := range all {
			mean += v / float64(len(all))
		}
		for _, v := range all {
			sq += (v - mean) * (v - mean)
		}
		fmt.Printf("%-60s %.5f sd %.5f lambda %.3g\n", one, mean, math.Sqrt(sq/float64(len(all)-1)), lam)
	}
}
