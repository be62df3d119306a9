package source

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/pool"
)

// PictureReading says which pictures are read, and what is public about them.
type PictureReading struct {
	Path    string     // one client's folder or file
	Shape   data.Shape // height, width and channels: what pictures are scaled to
	Classes []string   // in the order of the labels
	// Labelled asks what pictures show, by class folders or by labels of an archive.
	// Otherwise nobody asks: files may lie loose, folders have any name, archives no labels.
	Labelled bool
	Client   string // whose they are; empty: nobody is named
	// Several says that labelled pictures of nobody by name may be those of several
	// clients, as in training: a pattern, or a folder that has no class folder.
	Several bool
}

// PictureBatch is some of one client's pictures; it is valid until the next one.
type PictureBatch struct {
	Images data.Images // labels are 0 where nobody asks
	Names  []string    // by picture: its file's path, or its number in the archive, from 0
	Client string
}

// Bounds on a batch: what is in memory at a time, whatever is read.
const (
	mostBatchPictures = 256
	mostBatchBytes    = 1 << 24
)

// Each gives all pictures to take, scaled as in training, a batch at a time and client by
// client. Faults are all listed; what was made of batches must then be thrown away.
func (p PictureReading) Each(ctx context.Context, take func(*PictureBatch) error) error {
	block := config.Data{Height: p.Shape.Height, Width: p.Shape.Width, Channels: p.Shape.Depth()}
	for _, name := range p.Classes {
		block.Classes = append(block.Classes, config.Cell(name))
	}
	r, err := newPictureReader(block)
	if err != nil {
		return err
	}
	r.unlabelled, r.passing = !p.Labelled, true
	b := &batching{r: r, ctx: ctx, take: take, most: max(1, min(mostBatchPictures, mostBatchBytes/r.size()))}
	b.workers = pool.New(min(mostDecoders, runtime.GOMAXPROCS(0)))
	defer b.workers.Close()
	for _, part := range r.partsOf(p) {
		b.begin(part.name)
		if part.archive != "" {
			err = b.archive(part)
		} else {
			err = b.files(part.files)
		}
		if err != nil {
			return err
		}
	}
	return r.faults.err(p.Path)
}

// partsOf finds the clients that are read.
func (r *pictureReader) partsOf(p PictureReading) []pictureClient {
	switch {
	case r.unlabelled:
		return []pictureClient{r.findLoose(p.Path, p.Client)}
	case p.Several && p.Client == "" && r.holdsClients(p.Path):
		return r.findAll(p.Path)
	}
	return []pictureClient{r.find(p.Path, p.Client)}
}

// holdsClients says whether a path is of several clients, as in training: a pattern, or a
// folder that has no class folder.
func (r *pictureReader) holdsClients(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return strings.ContainsAny(path, "*?[")
	}
	return info.IsDir() && !slices.ContainsFunc(r.classes, func(class string) bool {
		info, err := os.Stat(filepath.Join(path, class))
		return err == nil && info.IsDir()
	})
}

// findLoose finds pictures that nobody asks about: a file, an archive, or a folder of
// files, which may lie in further folders, or of one archive.
func (r *pictureReader) findLoose(path, name string) pictureClient {
	c := pictureClient{name: name, path: path}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		r.faults.add(path, withoutPath(err))
		return c
	case !info.IsDir() && isArchive(path):
		r.archive(&c, path)
		return c
	case !info.IsDir():
		c.files = []pictureFile{{path: path}}
		return c
	}
	before := len(r.faults)
	var archives []string
	names, _ := r.list(path)
	for _, name := range names {
		at := filepath.Join(path, name)
		switch info, err := os.Stat(at); {
		case err != nil:
			r.faults.add(at, withoutPath(err))
		case info.IsDir():
			r.findFiles(&c, at)
		case isLabels(name): // nobody asks for them
		case isArchive(name):
			archives = append(archives, at)
		default:
			c.files = append(c.files, pictureFile{path: at})
		}
	}
	switch {
	case len(archives) > 1 || len(archives) == 1 && len(c.files) > 0:
		r.faults.add(path, fmt.Errorf("holds %d idx or npz files and %d other files; allowed: one client's, which are PNG and JPEG files, or one idx or npz file: name that file, or that client's folder", len(archives), len(c.files)))
	case len(archives) == 1:
		r.archive(&c, archives[0])
	case len(c.files) == 0 && len(r.faults) == before:
		r.faults.add(path, fmt.Errorf("holds no picture; name a folder that does"))
	}
	return c
}

func isArchive(path string) bool {
	return strings.HasSuffix(path, ".npz") || idxName.MatchString(filepath.Base(path))
}

// findFiles takes the files of a folder inside the client's.
func (r *pictureReader) findFiles(c *pictureClient, folder string) {
	names, _ := r.list(folder)
	for _, name := range names {
		at := filepath.Join(folder, name)
		if info, err := os.Stat(at); err == nil && info.IsDir() {
			r.faults.add(at, fmt.Errorf("is a folder too deep: pictures lie in the folder that is named, or in folders inside it; of several clients name one's folder"))
			continue
		}
		c.files = append(c.files, pictureFile{path: at})
	}
}

// batching gathers pictures and gives them away.
type batching struct {
	r       *pictureReader
	ctx     context.Context
	take    func(*PictureBatch) error
	workers *pool.Pool
	most    int
	batch   PictureBatch
}

// begin starts a client.
func (b *batching) begin(client string) {
	b.batch.Images = data.Images{Height: b.r.height, Width: b.r.width, Channels: b.r.channels, Pixels: b.batch.Images.Pixels[:0], Labels: b.batch.Images.Labels[:0]}
	b.batch.Names, b.batch.Client = b.batch.Names[:0], client
}

// give gives the batch away, unless something is known to be wrong, and starts the
// client's next.
func (b *batching) give() error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	if len(b.r.faults) == 0 && len(b.batch.Names) > 0 {
		if err := b.take(&b.batch); err != nil {
			return err
		}
	}
	b.begin(b.batch.Client)
	return nil
}

// files decodes pictures, a batch on several cores at a time.
func (b *batching) files(files []pictureFile) error {
	size := b.r.size()
	for some := range slices.Chunk(files, b.most) {
		im := &b.batch.Images
		im.Pixels = slices.Grow(im.Pixels, len(some)*size)[:len(some)*size]
		wrong := make([]error, len(some)) // a place a job: nobody waits for a lock
		b.workers.Each(len(some), func(_, k int) { wrong[k] = b.r.decodeFile(some[k].path, im.Pixels[k*size:(k+1)*size]) })
		for k, file := range some {
			b.batch.Names, im.Labels = append(b.batch.Names, file.path), append(im.Labels, file.class)
			if wrong[k] != nil {
				b.r.faults.add(file.path, wrong[k])
			}
		}
		if err := b.give(); err != nil {
			return err
		}
	}
	return nil
}

// archive reads an archive's pictures.
func (b *batching) archive(part pictureClient) error {
	n := 0
	var stopped error
	faults := b.r.readArchive(part, func(pixels []byte, label int) error {
		im := &b.batch.Images
		im.Pixels, im.Labels = append(im.Pixels, pixels...), append(im.Labels, label)
		b.batch.Names = append(b.batch.Names, strconv.Itoa(n))
		n++
		if len(b.batch.Names) == b.most {
			stopped = b.give()
		}
		return stopped
	})
	if stopped != nil {
		return stopped
	}
	b.r.faults = append(b.r.faults, faults...)
	return b.give()
}
