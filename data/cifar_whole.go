package data

import "github.com/coterie-fl/coterie/config"

// cifarSize is how many pictures the whole of CIFAR-10 has to train on.
const cifarSize = 50000

// cifarFiles says how to get CIFAR-10.
const cifarFiles = "the binary version of CIFAR-10: cifar10/cifar-10-batches-bin/"

func init() {
	kind := centralKind("cifar10", cifarSize, func(r *config.Run) {
		pictured(r, "resnet8")
		r.Privacy.Epsilon = 8 // as the field reports it
		r.Algorithm.Local.Batch, r.Privacy.Clip, r.Algorithm.Local.Step = 1024, 1, 0.5
	})
	kind.Settle = settleCentral(0.1)
	Register(Kind{
		Get: cifarFiles, DataKind: kind,
		Shape: wholeShape(Shape{Classes: cifarClasses, Height: cifarSide, Width: cifarSide, Channels: 3}),
		Load: func(f *Folder, d config.Data, seed uint64) (*Federation, error) {
			p, err := loadCIFARParts(f)
			if err != nil {
				return nil, err
			}
			whole := func(im *Images) Client { return Client{Pictures: Pictures{Images: im, Index: places(im.Len())}} }
			return heldByOne(d, seed, cifarClasses, p.report, whole(p.train), whole(p.test))
		},
		Words: func(config.Data) string { return "CIFAR-10’s pictures, all in one place" },
	})
}

// loadCIFARParts reads both parts of CIFAR-10, once for both kinds of data that are made
// of them.
func loadCIFARParts(f *Folder) (*twoParts, error) {
	return once(f, "cifar10", []string{"cifar10"}, func(folder string) (p *twoParts, err error) {
		p = &twoParts{}
		p.train, p.test, p.report, err = LoadCIFAR(folder)
		return p, err
	})
}
