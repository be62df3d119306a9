package source

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/coterie-fl/coterie/config"
	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/internal/pool"
)

// Bounds on what files may claim: a picture of a client is decoded whole, and at most
// mostDecoders are at the same time.
const (
	mostPublicSide    = 1 << 12
	mostSide          = 1 << 14
	mostPixels        = 1 << 25 // of one picture, before it is scaled: 33 million
	mostDecoders      = 4
	mostPixelBytes    = 1 << 34 // of one client, as kept: 16 GiB
	mostFaultsFile    = 10      // that are listed of one file
	mostPictureFaults = 1000    // that are listed at all
)

// pictureReader makes pictures into those of the public form, and collects what is wrong.
type pictureReader struct {
	height, width, channels int
	classes                 []string
	unlabelled              bool // nobody asks what a picture shows
	passing                 bool // pictures are not kept
	faults                  pictureFaults
}

func newPictureReader(d config.Data) (*pictureReader, error) {
	var c config.Checker
	if checkForm(&c, d); c.Faults() != nil {
		return nil, c.Faults()
	}
	r := &pictureReader{height: d.Height, width: d.Width, channels: d.Channels}
	for _, name := range d.Classes {
		r.classes = append(r.classes, string(name))
	}
	return r, nil
}

// size is how many bytes a picture has.
func (r *pictureReader) size() int { return r.height * r.width * r.channels }

// read reads the pictures of every client: files and archives each by a worker of its
// own. What it returns can be used only if there are no faults.
func (r *pictureReader) read(parts []pictureClient) []data.Client {
	clients := make([]data.Client, len(parts))
	type job struct {
		client, place int
		file          pictureFile
	}
	var archives []int
	var jobs []job
	for i, part := range parts {
		clients[i].Name = part.name
		clients[i].Images = r.store(0)
		if part.archive != "" {
			archives = append(archives, i)
			continue
		}
		if err := r.fits(len(part.files)); err != nil {
			r.faults.add(part.path, err)
			continue
		}
		clients[i].Images = r.store(len(part.files))
		for place, file := range part.files {
			clients[i].Images.Labels[place] = file.class
			jobs = append(jobs, job{i, place, file})
		}
	}
	workers := pool.New(min(mostDecoders, runtime.GOMAXPROCS(0)))
	defer workers.Close()
	found := make([]pictureFaults, len(archives)) // a place a job: nobody waits for a lock
	workers.Each(len(archives), func(_, k int) {
		im := clients[archives[k]].Images
		found[k] = r.readArchive(parts[archives[k]], func(pixels []byte, label int) error {
			im.Pixels, im.Labels = append(im.Pixels, pixels...), append(im.Labels, label)
			return nil
		})
	})
	wrong := make([]error, len(jobs))
	workers.Each(len(jobs), func(_, k int) {
		j, size := jobs[k], r.size()
		wrong[k] = r.decodeFile(j.file.path, clients[j.client].Images.Pixels[j.place*size:(j.place+1)*size])
	})
	for k, err := range wrong {
		if err != nil {
			r.faults.add(jobs[k].file.path, err)
		}
	}
	r.faults = slices.Concat(append([]pictureFaults{r.faults}, found...)...)
	for i := range clients {
		clients[i].Index = make([]int, clients[i].Images.Len())
		for place := range clients[i].Index {
			clients[i].Index[place] = place
		}
	}
	return clients
}

// store has room for n pictures.
func (r *pictureReader) store(n int) *data.Images {
	return &data.Images{Height: r.height, Width: r.width, Channels: r.channels, Pixels: make([]byte, n*r.size()), Labels: make([]int, n)}
}

// fits says whether a client's pictures may be kept in memory.
func (r *pictureReader) fits(n int) error {
	if !r.passing && n > mostPixelBytes/r.size() {
		return fmt.Errorf("has %d pictures, which would take more than %d GiB of memory; allowed at %dx%dx%d: %d", n, mostPixelBytes>>30, r.height, r.width, r.channels, mostPixelBytes/r.size())
	}
	return nil
}

// checkSide refuses a picture by what its header claims, before memory is taken for it.
func checkSide(height, width int) error {
	if height < 1 || width < 1 || height > mostSide || width > mostSide || height*width > mostPixels {
		return fmt.Errorf("has %d by %d pixels; allowed: sides from 1 to %d, at most %d pixels", width, height, mostSide, mostPixels)
	}
	return nil
}

// openRegular opens a file that is one: opening a pipe would wait for ever.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("no plain file: %w", fs.ErrInvalid)}
	}
	return os.Open(path)
}

// pictureFault is what is wrong with one file.
type pictureFault struct {
	path string
	err  error
}

// pictureFaults are all that is wrong with the pictures.
type pictureFaults []pictureFault

func (f *pictureFaults) add(path string, err error) { *f = append(*f, pictureFault{path, err}) }

// err is all of it by path; nil if there is nothing.
func (f pictureFaults) err(source string) error {
	if len(f) == 0 {
		return nil
	}
	slices.SortStableFunc(f, func(a, b pictureFault) int { return cmp.Compare(a.path, b.path) })
	return fmt.Errorf("pictures of %s: nothing was taken from them: %w", source, f)
}

func (f pictureFaults) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d faults", len(f))
	if len(f) == 1 {
		b.Reset()
		b.WriteString("1 fault")
	}
	for _, one := range f[:min(len(f), mostPictureFaults)] {
		fmt.Fprintf(&b, "\n  %s: %v", one.path, one.err)
	}
	if more := len(f) - mostPictureFaults; more > 0 {
		fmt.Fprintf(&b, "\n  and %d more", more)
	}
	return b.String()
}

// Unwrap lets errors.Is see every one.
func (f pictureFaults) Unwrap() []error {
	all := make([]error, len(f))
	for i := range f {
		all[i] = f[i].err
	}
	return all
}
