package audit

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/rng"
)

func TestProto(t *testing.T) {
	im, err := data.LoadIDXImages(os.Getenv("COTERIE_DATA"), "mnist", "t10k", 10)
	if err != nil {
		t.Fatal(err)
	}
	name := os.Getenv("NET")
	if name == "" {
		name = "lenet"
	}
	n, _ := NamedNetwork(name, 62)
	v, err := NewVictim(n, "cross-entropy", 0.1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, nu := range []float64{0,0.1} {
		for k := range 1 {
			x := make([]float64, 784)
			for i := range x {
				x[i] = float64(im.Pixels[k*784+i]) / 255
			}
			f := rng.NewFamily(1, "t")
			r, err := v.Send(x, im.Labels[k], Sanitiser{Multiplier: nu}, f.Stream(0, k))
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			rec, err := DLG{Evaluations: 300, Restarts: 1, Enough: 1e-9, Seed: uint64(k), Loss: "cross-entropy"}.Attack(context.Background(), n, r.Update)
			if err != nil {
				t.Fatal(err)
			}
			p, _ := PSNR(x, rec.Picture)
			s, _ := SSIM(x, rec.Picture, 28, 28)
			fmt.Printf("nu %v sample %d label %d/%d match %.3g psnr %.1f ssim %.3f evals %d %.2fs\n", nu, k, rec.Label, im.Labels[k], rec.Match, p, s, rec.Evaluations, time.Since(began).Seconds())
		}
	}
}
