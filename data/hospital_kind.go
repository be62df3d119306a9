package data

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
)

func init() {
	register(Kind{
		Name: "hospital", Keys: []string{"year", "drgs", "index", "train_share"},
		Shape: wholeShape(Shape{Features: 3}),
		Load: func(f *Folder, d config.Data, seed uint64) (*Federation, error) {
			h, err := f.hospital(d)
			if err != nil {
				return nil, err
			}
			return h.Split(seed, d.TrainShare)
		},
		Words: func(d config.Data) string {
			return fmt.Sprintf("Medicare’s payments to hospitals in fiscal year %d: every provider is a client", d.Year)
		},
	})
}

// hospital reads the file that a block means, once.
func (f *Folder) hospital(d config.Data) (*Hospital, error) {
	if err := f.Has("hospital", "zip"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	o := HospitalOptions{File: Hospital2016, DRGs: d.DRGs}
	if d.Year == 2011 {
		o.File = Hospital2011
	}
	if d.Index == "code" {
		o.Index = ByCode
	}
	key := fmt.Sprint(o)
	if h := f.hospitals[key]; h != nil {
		return h, nil
	}
	h, err := LoadHospital(f.path, o)
	if err == nil {
		f.hospitals[key] = h
	}
	return h, err
}
