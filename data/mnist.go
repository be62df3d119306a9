package data

import (
	"fmt"

	"github.com/coterie-fl/coterie/config"
)

// idxSize is how many pictures MNIST and Fashion-MNIST have to train on.
const idxSize = 60000

func init() {
	kind := centralKind("mnist", idxSize, func(r *config.Run) {
		pictured(r, "mnist")
		r.Algorithm.Local.Step = 30
	})
	kind.Settle = settleCentral(0.03)
	Register(Kind{
		Get:      idxFiles("MNIST", "mnist"),
		DataKind: kind,
		Shape:    wholeShape(Shape{Classes: digitClasses, Height: 28, Width: 28, Channels: 1}),
		Load: func(f *Folder, d config.Data, seed uint64) (*Federation, error) {
			return loadWholeIDX(f, d, seed, "mnist")
		},
		Words: func(config.Data) string { return "MNIST’s digits, all in one place" },
	})
}

// idxFiles says which files a set in idx format has.
func idxFiles(name, set string) string {
	return fmt.Sprintf("%s's four files: %s/{train,t10k}-{images-idx3,labels-idx1}-ubyte.gz", name, set)
}

// loadIDXParts reads both parts of MNIST or Fashion-MNIST, once for all kinds of data that
// are made of them.
func loadIDXParts(f *Folder, set string) (*twoParts, error) {
	return once(f, set, []string{set}, func(folder string) (p *twoParts, err error) {
		p = &twoParts{}
		if p.train, err = LoadIDXImages(folder, set, "train", digitClasses); err == nil {
			p.test, err = LoadIDXImages(folder, set, "t10k", digitClasses)
		}
		if err == nil {
			p.report = LoadReport{Source: set, Rows: p.train.Len() + p.test.Len()}
		}
		return p, err
	})
}

// loadWholeIDX is the federation of one client with all pictures of a set.
func loadWholeIDX(f *Folder, d config.Data, seed uint64, set string) (*Federation, error) {
	p, err := loadIDXParts(f, set)
	if err != nil {
		return nil, err
	}
	whole := func(im *Images) Client { return Client{Pictures: Pictures{Images: im, Index: places(im.Len())}} }
	return heldByOne(d, seed, digitClasses, p.report, whole(p.train), whole(p.test))
}
