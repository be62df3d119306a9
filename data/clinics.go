package data

import (
	"bufio"
	"fmt"
	"io"
	"math"

	"github.com/coterie-fl/coterie/internal/rng"
)

// Clinics says how large an invented table of patients is: something to try the program
// on that is nobody's data, and as untidy as real tables are.
type Clinics struct {
	Clients int
	Rows    int // about so many a client; they differ by up to a half
	Seed    uint64
}

var clinicWards = []string{"cardiology", "surgery", "geriatrics", "neurology"}

// Write writes the table as CSV: a byte-order mark, a column that names the clinic,
// numbers, categories, yes and no, missing cells, a stray category, and a target, whether
// a patient came back, whose base rate and dependence on age differ from clinic to
// clinic: that is what a model of one's own can learn.
func (c Clinics) Write(w io.Writer) error {
	if c.Clients < 1 || c.Clients > 999 || c.Rows < 2 || c.Rows > 10_000_000 {
		return fmt.Errorf("%d clinics of about %d rows; allowed: 1 to 999, of 2 to 10,000,000", c.Clients, c.Rows)
	}
	out := bufio.NewWriter(w)
	fmt.Fprint(out, "\ufeffclinic,patient,age,bmi,ward,smoker,sex,visits,readmitted\n")
	family, patient := rng.NewFamily(c.Seed, "data: invented clinics"), 0
	for k := range c.Clients {
		src := family.Stream(0, k)
		uniform := src.Float64
		rows := int(float64(c.Rows) * (0.5 + uniform()))
		base, slope := 0.8*rng.Normal(src), 0.05+0.03*rng.Normal(src)
		for range max(2, rows) {
			patient++
			age := math.Round(min(99, max(18, 62+16*rng.Normal(src))))
			bmi := 27 + 5*rng.Normal(src)
			ward := clinicWards[int(uniform()*4)]
			smoker, sex := uniform() < 0.3, "f"
			if uniform() < 0.5 {
				sex = "m"
			}
			visits := math.Floor(-2 * math.Log(1-uniform()))
			z := base - 0.6 + slope*(age-62) + 0.07*(bmi-27) + 0.25*visits
			if smoker {
				z += 0.7
			}
			if ward == "geriatrics" {
				z += 0.6
			}
			back := uniform() < 1/(1+math.Exp(-z))
			cell := fmt.Sprintf("%.1f", bmi)
			if uniform() < 0.1 {
				cell = ""
			}
			if uniform() < 0.01 {
				ward = "other house"
			}
			fmt.Fprintf(out, "clinic-%02d,P%06d,%.0f,%s,%s,%s,%s,%.0f,%s\n", k+1, patient, age, cell, ward, yesNo(smoker), sex, visits, yesNo(back))
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
