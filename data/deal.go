package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// DealAdult writes UCI's Adult, both parts, as one table whose column "client" names one
// of several sites of different size and make-up. Site c of k has the weight 1.22^c; a
// row's weight there is further multiplied by exp(0.5*z*cos(2*pi*c/k) +
// 0.5*a*sin(2*pi*c/k)), with z = (years of education - 10)/2.5 and a = (age - 38)/13.5,
// and the row goes to a site with a probability in proportion to its weights, by a hash
// of its place that the seed keys. The census weight fnlwgt is left out, and the column
// "part" says which file a row is from.
func DealAdult(folder string, w io.Writer, sites int, seed uint64) error {
	if sites < 1 || sites > 99 {
		return fmt.Errorf("deal adult to %d sites; allowed: 1 to 99", sites)
	}
	out := csv.NewWriter(w)
	place := 0
	for p, part := range []string{"train", "test"} {
		r, done, err := openData(filepath.Join(folder, "adult", "adult_"+part+".csv.gz"))
		if err != nil {
			return err
		}
		if place, err = dealPart(out, r, part, p == 0, place, sites, seed); err != nil {
			return fmt.Errorf("adult, %s: %w", part, err)
		}
		if err := done(); err != nil {
			return fmt.Errorf("adult, %s: %w", part, err)
		}
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

func dealPart(out *csv.Writer, r io.Reader, part string, first bool, place, sites int, seed uint64) (int, error) {
	rows := csv.NewReader(r)
	header, err := rows.Read()
	if err != nil {
		return place, fmt.Errorf("no header: %w", err)
	}
	weight, age, education := slices.Index(header, "fnlwgt"), slices.Index(header, "age"), slices.Index(header, "education_num")
	if weight < 0 || age < 0 || education < 0 {
		return place, fmt.Errorf("the header lacks fnlwgt, age or education_num; it has %s", strings.Join(header, ", "))
	}
	if first {
		if err := out.Write(append(slices.Delete(slices.Clone(header), weight, weight+1), "part", "client")); err != nil {
			return place, err
		}
	}
	for ; ; place++ {
		cells, err := rows.Read()
		if err == io.EOF {
			return place, nil
		}
		if err != nil {
			return place, err
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		years, err := strconv.ParseFloat(cells[education], 64)
		if err != nil {
			return place, fmt.Errorf("education_num: %w", err)
		}
		old, err := strconv.ParseFloat(cells[age], 64)
		if err != nil {
			return place, fmt.Errorf("age: %w", err)
		}
		site := dealtTo(sites, (years-10)/2.5, (old-38)/13.5, seed, place)
		if err := out.Write(append(slices.Delete(cells, weight, weight+1), part, fmt.Sprintf("site-%02d", site+1))); err != nil {
			return place, err
		}
	}
}

// dealtTo draws a site: of exponential times with the sites' weights as rates, the
// earliest.
func dealtTo(sites int, z, a float64, seed uint64, place int) int {
	best, earliest := 0, math.Inf(1)
	for c := range sites {
		angle := 2 * math.Pi * float64(c) / float64(sites)
		weight := math.Pow(1.22, float64(c)) * math.Exp(0.5*z*math.Cos(angle)+0.5*a*math.Sin(angle))
		var b [24]byte
		binary.LittleEndian.PutUint64(b[:], seed)
		binary.LittleEndian.PutUint64(b[8:], uint64(place))
		binary.LittleEndian.PutUint64(b[16:], uint64(c))
		h := sha256.Sum256(b[:])
		u := (float64(binary.LittleEndian.Uint64(h[:])>>11) + 0.5) / (1 << 53)
		if t := -math.Log(u) / weight; t < earliest {
			best, earliest = c, t
		}
	}
	return best
}
