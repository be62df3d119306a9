package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/coterie-fl/coterie/data"
	"github.com/coterie-fl/coterie/data/source"
)

// Pictures are new pictures, and whose they are.
type Pictures struct {
	// Path is a folder or a file of one client's. To be judged, and without a client's
	// name, it may be a folder or pattern of clients, as in training.
	Path   string
	Client string // all pictures are this client's; empty: a newcomer's
	// Cluster is the model that clients get which were not there; nil: the one that fits
	// their labelled pictures best.
	Cluster *int
}

// chunkPictures is how many pictures a worker takes at a time.
const chunkPictures = 32

func (m *Model) pictureReading(p *Pictures, labelled bool) source.PictureReading {
	return source.PictureReading{Path: p.Path, Shape: m.Shape, Classes: m.Labels, Labelled: labelled, Client: p.Client}
}

// looksAt says why the models cannot be used on pictures; nil: they can.
func (m *Model) looksAt(p *Pictures) error {
	switch {
	case !m.Shape.Pictures():
		return fmt.Errorf("%s: its models are of rows, and take no pictures", m.Path)
	case m.Shape.Classes == 0:
		return fmt.Errorf("%s: its models give numbers for pictures; only classes of pictures can be predicted", m.Path)
	case p.Cluster != nil:
		_, err := m.Cluster(*p.Cluster)
		return err
	}
	return nil
}

// eachChunk does the chunks of a batch of pictures on all cores.
func (m *Model) eachChunk(im *data.Images, do func(w *worker, chunk, from, to int) error) error {
	return m.each(chunksOf(im), func(w *worker, i int) error {
		from, to := i*chunkPictures, min((i+1)*chunkPictures, im.Len())
		w.show(im, from, to)
		return do(w, i, from, to)
	})
}

func chunksOf(im *data.Images) int { return (im.Len() + chunkPictures - 1) / chunkPictures }

// choosePictures is the model for pictures to predict. Where somebody who was not there
// must show labelled ones, class folders and archives may hold them.
func (m *Model) choosePictures(ctx context.Context, p *Pictures) (Choice, error) {
	c, needs := m.Choose(p.Client)
	if !errors.Is(needs, ErrNeedsLabels) {
		return c, needs
	}
	if p.Cluster != nil {
		return m.Cluster(*p.Cluster)
	}
	losses, n := make([]float64, m.Clusters()), 0
	err := m.pictureReading(p, true).Each(ctx, func(b *source.PictureBatch) error {
		n += b.Images.Len()
		return m.addPictureLosses(losses, &b.Images)
	})
	switch {
	case ctx.Err() != nil:
		return c, ctx.Err()
	case err != nil:
		return c, fmt.Errorf("%w; their labels cannot be had: %w", needs, err)
	}
	return m.fitting(losses, n)
}

// addPictureLosses adds every cluster's loss on labelled pictures to sums.
func (m *Model) addPictureLosses(sums []float64, im *data.Images) error {
	parts := make([][]float64, chunksOf(im)) // summed in their order, whoever is ready first
	err := m.eachChunk(im, func(w *worker, chunk, from, to int) error {
		parts[chunk] = make([]float64, len(sums))
		each := make([]float64, to-from)
		for k := range sums {
			c, err := m.Cluster(k)
			if err != nil {
				return err
			}
			if err := w.losses(each, &c); err != nil {
				return err
			}
			for _, l := range each {
				parts[chunk][k] += l
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, part := range parts {
		for k, l := range part {
			sums[k] += l
		}
	}
	return nil
}

// PredictPictures answers every picture and writes the answers as CSV: the path of its
// file, or its number in the archive; every class's probability; the chosen class. After
// an error what was written is of no use.
func (m *Model) PredictPictures(ctx context.Context, w io.Writer, p Pictures) (Predictions, error) {
	if err := m.looksAt(&p); err != nil {
		return Predictions{}, err
	}
	c, err := m.choosePictures(ctx, &p)
	if err != nil {
		return Predictions{}, err
	}
	if _, err := w.Write(headerLine(append([]string{"picture"}, m.answerNames()...))); err != nil {
		return Predictions{}, fmt.Errorf("write the predictions: %w", err)
	}
	used := Used{Client: p.Client, Model: c.String(), Why: c.Why}
	each, classes := m.Outputs(), m.classCells()
	var texts [][]byte // of every chunk of a batch
	err = m.pictureReading(&p, false).Each(ctx, func(b *source.PictureBatch) error {
		for len(texts) < chunksOf(&b.Images) {
			texts = append(texts, nil)
		}
		err := m.eachChunk(&b.Images, func(w *worker, chunk, from, to int) error {
			answers := make([]float64, (to-from)*each)
			if err := w.answer(answers, &c); err != nil {
				return err
			}
			line := texts[chunk][:0]
			for i := range to - from {
				line = append(appendAnswers(appendCell(line, b.Names[from+i]), answers[i*each:(i+1)*each], classes), '\n')
			}
			texts[chunk] = line
			return nil
		})
		if err != nil {
			return err
		}
		for _, text := range texts[:chunksOf(&b.Images)] {
			if _, err := w.Write(text); err != nil {
				return fmt.Errorf("write the predictions: %w", err)
			}
		}
		used.Rows += b.Images.Len()
		return nil
	})
	if err != nil {
		return Predictions{}, err
	}
	return Predictions{Rows: used.Rows, Models: []Used{used}}, nil
}

// EvaluatePictures judges the models on labelled pictures, as EvaluateTable does on rows.
func (m *Model) EvaluatePictures(ctx context.Context, p Pictures) (Evaluation, error) {
	if err := m.looksAt(&p); err != nil {
		return Evaluation{}, err
	}
	if m.projects() {
		return Evaluation{}, fmt.Errorf("%s: its models are projections of pictures, and what they capture is only known of tables; a run's own report says what they capture of held-out pictures", m.Path)
	}
	e := &evaluating{m: m, cluster: p.Cluster, place: map[string]int{}}
	r := m.pictureReading(&p, true)
	r.Several = true
	if err := r.Each(ctx, e.look); err != nil {
		return Evaluation{}, err
	}
	return e.figures()
}

// look has a batch's pictures, which are one client's, answered on all cores.
func (e *evaluating) look(b *source.PictureBatch) error {
	a, err := e.client(b.Client)
	if err != nil {
		return err
	}
	im := &b.Images
	for k := range a.models {
		c := &a.models[k]
		parts, losses := make([][]float64, chunksOf(im)), make([]float64, im.Len())
		err := e.m.eachChunk(im, func(w *worker, chunk, from, to int) error {
			outputs, each, err := w.raw(c)
			if err != nil {
				return err
			}
			parts[chunk] = append([]float64(nil), outputs...)
			if chunk == 0 {
				a.each = each
			}
			if len(a.models) == 1 {
				return nil
			}
			return w.losses(losses[from:to], c)
		})
		if err != nil {
			return err
		}
		for _, part := range parts {
			a.outputs[k] = append(a.outputs[k], part...)
		}
		a.losses[k] = append(a.losses[k], losses...)
	}
	for _, label := range im.Labels {
		a.targets = append(a.targets, float64(label))
	}
	return nil
}
