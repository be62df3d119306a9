package data

import (
	"github.com/coterie-fl/coterie/config"
)

// twoParts are pictures to train with and pictures to test with.
type twoParts struct {
	train, test *Images
	report      LoadReport
}

// siloFederation reads a federation whose silos hold out part of their own.
func (f *Folder) siloFederation(d config.Data, seed uint64) (*Federation, error) {
	switch d.Kind {
	case "rotated-mnist":
		p, err := f.readPictures("mnist", func() (p twoParts, err error) {
			if p.train, err = LoadIDXImages(f.path, "mnist", "train", digitClasses); err == nil {
				p.test, err = LoadIDXImages(f.path, "mnist", "t10k", digitClasses)
			}
			return p, err
		})
		if err != nil {
			return nil, err
		}
		return RotatedSilos(p.train, p.test, RotatedOptions{Seed: seed, Silos: d.Silos, Mask: d.Mask, MaskSize: d.MaskSize, TrainLimit: d.TrainLimit})
	case "cifar10-silos":
		p, err := f.readPictures("cifar10", func() (p twoParts, err error) {
			p.train, p.test, p.report, err = LoadCIFAR(f.path)
			return p, err
		})
		if err != nil {
			return nil, err
		}
		return CIFARSilos(p.train, p.test, p.report, seed, d.Silos, d.SiloClasses, d.TrainLimit)
	case "adni":
		if err := f.Has("adni"); err != nil {
			return nil, err
		}
		a, err := LoadADNI(f.path)
		if err != nil {
			return nil, err
		}
		return a.Federation(seed, d.TestShare, d.TrainLimit)
	}
	return f.siloRows(d, seed)
}

// readPictures reads a set of pictures once.
func (f *Folder) readPictures(set string, read func() (twoParts, error)) (*twoParts, error) {
	if err := f.Has(set); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.pictures[set]; p != nil {
		return p, nil
	}
	p, err := read()
	if err != nil {
		return nil, err
	}
	f.pictures[set] = &p
	return &p, nil
}

// siloRows reads a federation of silos of rows.
func (f *Folder) siloRows(d config.Data, seed uint64) (*Federation, error) {
	s, err := f.readSilos(d.Kind)
	if err != nil {
		return nil, err
	}
	o := SiloOptions{Seed: seed, TestShare: d.TestShare, TrainLimit: d.TrainLimit, Standardise: Standardise(d.Standardise)}
	o.Centre, o.Scale = PublicRange(d)
	return s.Federation(o)
}

func (f *Folder) readSilos(kind string) (*Silos, error) {
	if err := f.Has(kind); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.silos[kind]; s != nil {
		return s, nil
	}
	load := LoadSchool
	switch kind {
	case "vehicle":
		load = LoadVehicle
	case "gleam":
		load = LoadGLEAM
	}
	s, err := load(f.path)
	if err == nil {
		f.silos[kind] = s
	}
	return s, err
}

// leaveOutMany counts examples that have no place of their own.
func (r *LoadReport) leaveOutMany(reason string, count int) {
	for i := range r.LeftOut {
		if r.LeftOut[i].Reason == reason {
			r.LeftOut[i].Count += count
			return
		}
	}
	r.LeftOut = append(r.LeftOut, LeftOut{Reason: reason, Count: count})
}
