package contacts

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Households are real or invented ones, from which populations are drawn whole.
type Households struct {
	Offsets  []int // of a household's first person, and the end
	Age, Sex []uint8
	Source   string // in words
}

// HouseholdsFile is where the challenge's published persons lie in a data folder.
const HouseholdsFile = "pets-pandemic/va_person.csv.gz"

// ReadHouseholds reads a person table of the challenge, plain or gzip, whose persons of one
// household stand together.
func ReadHouseholds(path string) (*Households, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the challenge's persons cannot be read (docs/data.md says how to get them): %w", err)
	}
	defer f.Close()
	in := bufio.NewReader(f)
	var r io.Reader = in
	if magic, _ := in.Peek(2); bytes.Equal(magic, gzipMagic) {
		if r, err = gzip.NewReader(in); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	h := &Households{Source: "the challenge's published persons"}
	lines := bufio.NewScanner(r)
	seen := map[string]bool{}
	last := ""
	for line := 1; lines.Scan(); line++ {
		cells := strings.Split(strings.TrimSuffix(lines.Text(), "\r"), ",")
		if line == 1 {
			if strings.Join(cells, ",") != "hid,pid,person_number,age,sex" {
				return nil, fmt.Errorf("%s, line 1: the columns are %q, not hid,pid,person_number,age,sex", path, lines.Text())
			}
			continue
		}
		if len(cells) != 5 {
			return nil, fmt.Errorf("%s, line %d: %d cells instead of 5", path, line, len(cells))
		}
		age, errAge := strconv.ParseUint(cells[3], 10, 8)
		sex, errSex := strconv.ParseUint(cells[4], 10, 8)
		if errAge != nil || errSex != nil || age > maxAge || sex < 1 || sex > 2 {
			return nil, fmt.Errorf("%s, line %d: age %q, sex %q; allowed: 0 to %d, and 1 or 2", path, line, cells[3], cells[4], maxAge)
		}
		if hid := cells[0]; hid != last || line == 2 {
			if seen[hid] {
				return nil, fmt.Errorf("%s, line %d: household %s stands in two places; sort the rows by hid", path, line, hid)
			}
			seen[hid], last = true, hid
			h.Offsets = append(h.Offsets, len(h.Age))
		}
		h.Age, h.Sex = append(h.Age, uint8(age)), append(h.Sex, uint8(sex))
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(h.Age) == 0 {
		return nil, fmt.Errorf("%s: no persons", path)
	}
	h.Offsets = append(h.Offsets, len(h.Age))
	return h, h.check()
}

var gzipMagic = []byte{0x1f, 0x8b}

var errHouseholds = errors.New("households to draw from")

const (
	maxAge       = 120
	maxHousehold = 255
)

// check says what is wrong with a list that somebody made.
func (h *Households) check() error {
	if len(h.Offsets) < 2 || h.Offsets[0] != 0 || h.Offsets[len(h.Offsets)-1] != len(h.Age) || len(h.Age) != len(h.Sex) {
		return fmt.Errorf("%w: %d offsets do not cut %d ages and %d sexes into households", errHouseholds, len(h.Offsets), len(h.Age), len(h.Sex))
	}
	for i, from := range h.Offsets[:len(h.Offsets)-1] {
		if size := h.Offsets[i+1] - from; size < 1 || size > maxHousehold {
			return fmt.Errorf("%w: household %d has %d persons; allowed: 1 to %d", errHouseholds, i, size, maxHousehold)
		}
	}
	return nil
}

// Invented are households for those who have no real ones: sizes by the shares of the
// challenge's, ages by a rule. One of one or two is of adults, in nearly half of them over
// 64; larger ones have two adults of 28 to 59, and the others are children, or grown up in
// one case of five.
func Invented() *Households {
	h := &Households{Source: "invented, because the challenge's persons (" + HouseholdsFile + ") are not at hand"}
	shares := []struct{ size, count int }{{1, 2020}, {2, 4470}, {3, 1490}, {4, 830}, {5, 880}, {6, 300}, {8, 15}}
	age, sex := streamOf(0, 1), streamOf(0, 2)
	for _, s := range shares {
		for range s.count {
			h.Offsets = append(h.Offsets, len(h.Age))
			first := uint64(len(h.Age))
			for k := range s.size {
				id := first + uint64(k)
				years, kind := age.of(id).share(1), age.of(first).share(2)
				var a float64
				switch {
				case s.size <= 2 && kind < .45:
					a = 65 + 25*years
				case s.size <= 2:
					a = 22 + 43*years
				case k < 2:
					a = 28 + 32*years
				case age.of(id).share(3) < .2:
					a = 18 + 12*years
				default:
					a = 18 * years
				}
				h.Age, h.Sex = append(h.Age, uint8(a)), append(h.Sex, uint8(1+sex.below(2, id)))
			}
		}
	}
	h.Offsets = append(h.Offsets, len(h.Age))
	return h
}
