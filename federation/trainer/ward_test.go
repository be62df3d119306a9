package trainer_test

import (
	"encoding/csv"
	"os"
	"strconv"
	"testing"

	"github.com/coterie-fl/coterie/data"
)

// ward is the example's file.
func ward(t *testing.T) *data.Client {
	t.Helper()
	f, err := os.Open("../../examples/trainer/ward.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	c := &data.Client{Rows: data.Rows{Features: 2}}
	for _, r := range records[1:] {
		for i, text := range r {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			if i < 2 {
				c.X = append(c.X, v)
			} else {
				c.Y = append(c.Y, v)
			}
		}
	}
	return c
}
