package data

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/coterie-fl/coterie/config"
)

func init() {
	Register(Kind{
		Get: "data.cms.gov, Medicare Inpatient Hospitals - by Provider and Service: hospital/, and zip/us_zip_latlon.csv.gz",
		DataKind: config.DataKind{
			Name: "hospital",
			Defaults: func(d *config.Data) {
				d.Year, d.DRGs, d.Index = 2016, slices.Clone(hospitalDRGs), "listing"
			},
			Keys: []string{"year", "drgs", "index", "train_share"},
		},
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

// The scales of the hospital federation are public constants, so that no client
// needs to know another's data (papers 000, 001: appendix B.2, point iv).
const (
	// HospitalDollars is how many dollars one unit of the target is.
	HospitalDollars = 10_000
	// hospitalDegrees is how many degrees one unit of a coordinate is.
	hospitalDegrees = 100
	// maxPayment bounds an average payment for one stay.
	maxPayment = 10_000_000
)

// The stored files of hospital charges, by fiscal year.
const (
	Hospital2016 = "ipps_fy2016_pneumonia_uti_hf_gi.csv.gz"
	Hospital2011 = "ipps_fy2011_six_states.csv.gz"
)

// hospitalDRGs are the papers' four conditions in the order in which they list
// them: simple pneumonia and pleurisy w CC, kidney and urinary tract infections
// w/o MCC, heart failure and shock w CC, esophagitis and digestive disorders w/o
// MCC. The papers do not name the severity; any other is an option away.
var hospitalDRGs = []int{194, 690, 292, 392}

// HospitalIndex says how the conditions are numbered.
type HospitalIndex int

// The ways to number conditions.
const (
	ByListing HospitalIndex = iota // 1, 2, … in the order of HospitalOptions.DRGs
	ByCode                         // 1, 2, … in ascending order of the DRG codes
)

// HospitalOptions say which charges to take. The zero value is the papers'.
type HospitalOptions struct {
	// File is a name in the folder hospital of the real data, or a path to a CSV
	// that CMS publishes. Empty: Hospital2016.
	File string
	// DRGs are the conditions; empty: 194, 690, 292, 392.
	DRGs []int
	// Index says how the conditions are numbered.
	Index HospitalIndex
}

// Hospital is the federation of paper 000, appendix B.2, before its split: one
// client per provider, one row per condition. Features: condition number divided
// by the number of conditions, longitude/100, latitude/100. Target: average total
// payment in units of HospitalDollars.
type Hospital struct {
	DRGs      []int    // in the order of their numbers
	Providers []string // 6 characters, ascending
	Clients   []Client // of the providers
	Report    LoadReport
}

// Why rows are left out.
const (
	leftMalformed  = "malformed row"
	leftOtherDRG   = "another condition"
	leftUnknownZIP = "ZIP code without coordinates"
	leftOtherZIP   = "another ZIP code than in the provider's first row"
)

// LoadHospital reads hospital charges and the ZIP table of the folder of real
// data. Malformed rows and unknown ZIP codes are left out and counted.
func LoadHospital(folder string, o HospitalOptions) (*Hospital, error) {
	zips, err := LoadZIP(folder)
	if err != nil {
		return nil, err
	}
	path := o.File
	switch {
	case path == "":
		path = filepath.Join(folder, "hospital", Hospital2016)
	case filepath.Base(path) == path:
		path = filepath.Join(folder, "hospital", path)
	}
	return readFile(path, func(name string, r io.Reader) (*Hospital, error) { return ReadHospital(name, r, zips, o) })
}

// ReadHospital reads hospital charges from one of the layouts that its header
// tells: the stored files, the CSV that CMS published for fiscal years 2011 to
// 2017, or the one of its later releases. The name is for errors; o.File is not
// used.
func ReadHospital(name string, r io.Reader, zips *ZIPTable, o HospitalOptions) (*Hospital, error) {
	drgs, err := o.conditions()
	if err != nil {
		return nil, err
	}
	t, err := newTable(name, r)
	if err != nil {
		return nil, err
	}
	layout, err := findHospitalLayout(t)
	if err != nil {
		return nil, err
	}
	h := &Hospital{DRGs: drgs, Report: LoadReport{Source: name}}
	all := map[string]*provider{}
	for row, err := range t.rows() {
		if err == nil {
			err = h.take(row, layout, zips, all)
		}
		var bad *fault
		if errors.As(err, &bad) {
			h.Report.leaveOut(leftMalformed, bad.Error())
		} else if err != nil {
			return nil, err
		}
		h.Report.Rows++
	}
	h.build(all)
	if len(h.Clients) == 0 {
		return nil, fmt.Errorf("no provider is left: %s", &h.Report)
	}
	return h, nil
}

// conditions are the DRGs in the order of their numbers.
func (o HospitalOptions) conditions() ([]int, error) {
	drgs := slices.Clone(o.DRGs)
	if len(drgs) == 0 {
		drgs = slices.Clone(hospitalDRGs)
	}
	for i, d := range drgs {
		if d < 1 || d > 999 {
			return nil, fmt.Errorf("hospital: DRG %d; allowed: 1 to 999", d)
		}
		if slices.Contains(drgs[:i], d) {
			return nil, fmt.Errorf("hospital: DRG %d is listed twice", d)
		}
	}
	switch o.Index {
	case ByListing:
	case ByCode:
		slices.Sort(drgs)
	default:
		return nil, fmt.Errorf("hospital: index %d; allowed: ByListing, ByCode", o.Index)
	}
	return drgs, nil
}

// provider is what the file says about one hospital.
type provider struct {
	zip      string
	place    Place
	payments []float64 // by condition; 0: none
	lines    []int
}

// take adds one row. A *fault spoils this row only.
func (h *Hospital) take(r row, l hospitalLayout, zips *ZIPTable, all map[string]*provider) error {
	charge, err := l.read(r)
	if err != nil {
		return err
	}
	k := slices.Index(h.DRGs, charge.drg)
	if k < 0 {
		h.Report.leaveOut(leftOtherDRG, "")
		return nil
	}
	if err := l.readRest(r, &charge); err != nil {
		return err
	}
	place, known := zips.Find(charge.zip)
	if !known {
		h.Report.leaveOut(leftUnknownZIP, fmt.Sprintf("%s, line %d: provider %s, ZIP %s", r.t.name, r.t.line, charge.provider, charge.zip))
		return nil
	}
	p := all[charge.provider]
	if p == nil {
		p = &provider{charge.zip, place, make([]float64, len(h.DRGs)), make([]int, len(h.DRGs))}
		all[charge.provider] = p
	}
	if p.zip != charge.zip {
		h.Report.leaveOut(leftOtherZIP, fmt.Sprintf("%s, line %d: provider %s, ZIP %s after %s", r.t.name, r.t.line, charge.provider, charge.zip, p.zip))
		return nil
	}
	if p.lines[k] != 0 {
		// Not a row to skip: the file holds one row of each kind unless years were mixed.
		return fmt.Errorf("%s, line %d: provider %s and DRG %d were on line %d already: the file must hold one fiscal year",
			r.t.name, r.t.line, charge.provider, charge.drg, p.lines[k])
	}
	p.payments[k], p.lines[k] = charge.payment, r.t.line
	return nil
}

// build lays the clients out in one block, in the order of their identifiers.
func (h *Hospital) build(all map[string]*provider) {
	h.Providers = slices.Sorted(maps.Keys(all))
	most := len(all) * len(h.DRGs)
	x, y := make([]float64, 0, 3*most), make([]float64, 0, most)
	for _, id := range h.Providers {
		p, fromX, fromY := all[id], len(x), len(y)
		for k, line := range p.lines {
			if line == 0 {
				continue
			}
			x = append(x, float64(k+1)/float64(len(h.DRGs)), p.place.Lon/hospitalDegrees, p.place.Lat/hospitalDegrees)
			y = append(y, p.payments[k]/HospitalDollars)
		}
		h.Clients = append(h.Clients, Client{Rows: Rows{X: x[fromX:len(x):len(x)], Y: y[fromY:len(y):len(y)], Features: 3}, Name: id})
	}
	h.Report.Kept = len(y)
}

// Split draws which providers train: floor(share*n), by a shuffle keyed by seed.
// The others validate.
func (h *Hospital) Split(seed uint64, share float64) (*Federation, error) {
	train, rest, err := splitKeyed(seed, "data: hospital split", len(h.Clients), share)
	if err != nil {
		return nil, fmt.Errorf("hospital: %w", err)
	}
	return &Federation{Features: 3, Train: those(h.Clients, train), Validation: those(h.Clients, rest)}, nil
}

// hospital reads the file that a block means.
func (f *Folder) hospital(d config.Data) (*Hospital, error) {
	o := HospitalOptions{File: Hospital2016, DRGs: d.DRGs}
	if d.Year == 2011 {
		o.File = Hospital2011
	}
	if d.Index == "code" {
		o.Index = ByCode
	}
	return once(f, fmt.Sprint(o), []string{"hospital", "zip"}, func(folder string) (*Hospital, error) { return LoadHospital(folder, o) })
}
