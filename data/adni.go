package data

import (
	"bufio"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
)

// Brain scans of ADNI, paper 002, appendix B.1: a silo is a maker of scanners, a
// picture is a slice, scaled down to 32 by 32, the target is the scan's SUVR. The
// data need ADNI's approval; the layout is that of the paper's published code.
const (
	adniSide    = 32
	adniFolder  = "adni_data2"
	adniLabels  = "labels_2.txt"
	adniLowest  = 0 // of an SUVR; values lie around 0.8 to 2
	adniHighest = 10
)

func init() {
	Register(Kind{
		Get: "with the approval of ADNI (adni.loni.usc.edu): adni/labels_2.txt, adni/adni_data2/MAKER/*.png",
		DataKind: SiloKind("adni", func(r *config.Run) {
			pictured(r, "cross-silo-adni")
			r.Data.TestShare, r.Algorithm.Rounds, r.Algorithm.Local.Batch = 0.25, 500, 64
			r.Privacy.Clip, r.Privacy.Delta = 0.5, 1e-4
			r.Algorithm.Selection.Score = "loss" // answers are values
		}, "test_share", "train_limit"),
		Shape: wholeShape(Shape{Height: adniSide, Width: adniSide}),
		Load: func(f *Folder, d config.Data, seed uint64) (*Federation, error) {
			a, err := once(f, "adni", []string{"adni"}, LoadADNI)
			if err != nil {
				return nil, err
			}
			return a.Federation(seed, d.TestShare, d.TrainLimit)
		},
		Words: func(config.Data) string { return "Brain scans of ADNI: every maker of scanners is a silo" },
	})
}

// adniMakers are the silos' folders.
var adniMakers = []string{
	"CPS", "GEMS", "GE_MEDICAL_SYSTEMS", "HERMES", "MiE", "Multiple", "Philips",
	"Philips_Medical_Systems", "SIEMENS", "Siemens_CTI", "Siemens_ECAT",
}

// Why ADNI's files are left out.
const (
	leftNoMaker   = "folder that is no maker of scanners"
	leftNoPicture = "file that is no PNG picture"
	leftNoTarget  = "picture without a line in the labels"
)

// ADNI is scans by the maker of the scanner.
type ADNI struct {
	Images *Images
	Silos  []string
	Index  [][]int // pictures of every silo
	Report LoadReport
}

// LoadADNI reads adni/labels_2.txt (lines of patient, picture, value) and the PNG
// files of adni/adni_data2/MAKER/.
func LoadADNI(folder string) (*ADNI, error) {
	base := filepath.Join(folder, "adni")
	targets, err := readADNITargets(filepath.Join(base, adniLabels))
	if err != nil {
		return nil, err
	}
	root := filepath.Join(base, adniFolder)
	makers, err := os.ReadDir(root)
	if err != nil {
		return nil, fmt.Errorf("a data folder is missing or cannot be read (docs/data.md says how to get it): %w", err)
	}
	a := &ADNI{Images: &Images{Height: adniSide, Width: adniSide}, Report: LoadReport{Source: base}}
	a.Report.Notes = []string{"a patient has several pictures: privacy of one picture is not privacy of a patient"}
	for _, m := range makers { // in the order of their names
		if !m.IsDir() || !slices.Contains(adniMakers, m.Name()) {
			a.Report.leaveOut(leftNoMaker, m.Name())
			continue
		}
		if err := a.readMaker(root, m.Name(), targets); err != nil {
			return nil, err
		}
	}
	if len(a.Silos) == 0 {
		return nil, fmt.Errorf("no silo is left: %s", &a.Report)
	}
	return a, nil
}

func (a *ADNI) readMaker(root, maker string, targets map[[2]string]float64) error {
	files, err := os.ReadDir(filepath.Join(root, maker))
	if err != nil {
		return fmt.Errorf("a data folder cannot be read: %w", err)
	}
	var index []int
	for _, file := range files {
		name, isPNG := strings.CutSuffix(file.Name(), ".png")
		parts := strings.Split(name, "_")
		if !isPNG || len(parts) < 5 {
			a.Report.leaveOut(leftNoPicture, filepath.Join(maker, file.Name()))
			continue
		}
		a.Report.Rows++
		// ADNI_016_S_0702_…_I193766: the fourth part is the patient, the last one the
		// picture.
		target, known := targets[[2]string{parts[3], parts[len(parts)-1]}]
		if !known {
			a.Report.leaveOut(leftNoTarget, filepath.Join(maker, file.Name()))
			continue
		}
		if err := a.readScan(filepath.Join(root, maker, file.Name())); err != nil {
			return err
		}
		index = append(index, a.Images.Len())
		a.Images.Targets = append(a.Images.Targets, target)
		a.Report.Kept++
	}
	if len(index) > 0 {
		a.Silos, a.Index = append(a.Silos, maker), append(a.Index, index)
	} else {
		a.Report.leaveOut(leftTinySilo, maker+": 0")
	}
	return nil
}

// readScan adds a picture: every pixel is the mean of a square of the file's.
func (a *ADNI) readScan(path string) error {
	scan, err := readPNG(path)
	if err != nil {
		return err
	}
	at, size := scan.Bounds().Min, scan.Bounds().Size()
	square := size.X / adniSide
	if size.X != size.Y || square < 1 || size.X%adniSide != 0 {
		return fmt.Errorf("%s: %d by %d pixels; wanted: a square whose side is a multiple of %d (ADNI's are 160)", path, size.X, size.Y, adniSide)
	}
	for y := range adniSide {
		for x := range adniSide {
			sum := 0
			for dy := range square {
				for dx := range square {
					grey := color.GrayModel.Convert(scan.At(at.X+x*square+dx, at.Y+y*square+dy)).(color.Gray)
					sum += int(grey.Y)
				}
			}
			a.Images.Pixels = append(a.Images.Pixels, byte((sum+square*square/2)/(square*square)))
		}
	}
	return nil
}

// readADNITargets reads the value of every patient's picture.
func readADNITargets(path string) (map[[2]string]float64, error) {
	r, done, err := openData(path)
	if err != nil {
		return nil, err
	}
	defer done()
	t := &table{name: path, lines: bufio.NewReaderSize(r, maxLine), header: []string{"patient", "picture", "value"}}
	targets := map[[2]string]float64{}
	for row, err := range t.rows() {
		if err != nil {
			return nil, err
		}
		v, err := row.number(2, adniLowest, adniHighest)
		if err != nil {
			return nil, err
		}
		key := [2]string{row.cells[0], row.cells[1]}
		if old, twice := targets[key]; twice && old != v {
			return nil, row.faultf(1, "patient %s, picture %s has two values, %v and %v", key[0], key[1], old, v)
		}
		targets[key] = v
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("%s: no labels", path)
	}
	return targets, nil
}

// Federation holds out a share of every silo's pictures, drawn from each picture alone.
func (a *ADNI) Federation(seed uint64, testShare float64, limit int) (*Federation, error) {
	if !(testShare > 0 && testShare < 1) {
		return nil, fmt.Errorf("ADNI: a test share of %v; allowed: between 0 and 1", testShare)
	}
	out := newPictureSilos(0, 0, a.Report)
	for k, name := range a.Silos {
		all := Client{Pictures: Pictures{a.Images, a.Index[k]}, Name: name}
		train, held := all.split(testShare, seed)
		kept := all.atMost(limit, train, seed)
		if over := len(train) - len(kept); over > 0 {
			out.f.Report.leaveOutMany(leftOverLimit, over)
		}
		out.add(all.divide(kept, held))
	}
	return out.done()
}
