package inversion

import (
	"fmt"
	"slices"

	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/report/study"
	"github.com/coterie-fl/coterie/repro/lab"
)

// papersClaims is what the papers say of DLG, as sides of our figures: most pictures
// recovered, a similarity that lets one recognise something (the control has about 0.1), a
// similarity that does not.
type papersClaims struct {
	Source string `json:"source"`
	Claims []struct {
		UpTo   float64  `json:"up_to"` // noise multiplier
		Metric string   `json:"metric"`
		Above  *float64 `json:"above"` // one of both
		Below  *float64 `json:"below"`
		Text   string   `json:"text"`
	} `json:"claims"`
}

// rows are the first fitting claim, judged by the pictures: each is another writer's, with
// parameters and noise of its own.
func (c papersClaims) rows(n network, nu float64, scores []attackScore) []study.Row {
	for _, claim := range c.Claims {
		if nu > claim.UpTo {
			continue
		}
		r := study.Row{
			Section: "Claims of the texts on DLG: " + n.title, Label: fmt.Sprintf("nu %v", nu), Metric: claim.Metric, Sentence: claim.Text,
			Settings: map[string]any{"nu": nu, "network": n.name, "attack": attackDLG, "samples": len(scores)},
		}
		switch similar := lab.Pick(scores, func(s attackScore) float64 { return s.SSIM }); {
		case claim.Metric == "recovered":
			r.Unit, r.Why = "share", "We believe that this network hides more of the picture, or that so few pictures do not tell. Tested by the closed form on the same updates."
			return []study.Row{lab.Share95(r, hits(scores), len(scores), *claim.Above)}
		case claim.Above != nil:
			r.Metric, r.Why = "mean SSIM over pictures", "We believe that so few pictures do not tell, or that the search ends before it has found what is there. Tested by the closed form on the same updates."
			r.Note = fmt.Sprintf("agrees: the whole 95 %% interval over pictures above %v", *claim.Above)
			return []study.Row{lab.Effect(r, similar, *claim.Above)}
		default:
			r.Metric, r.Why = "mean SSIM over pictures", "We believe that noise of the same share of an update's length spoils less where there are more parameters: a picture has few numbers, and the search averages over all equations that it has. Tested by the smaller network beside it, at the same noise, and by the closed form on the same updates."
			r.Note = fmt.Sprintf("agrees: the whole 95 %% interval over pictures below %v", *claim.Below)
			return []study.Row{lab.AtMost(r, similar, *claim.Below)}
		}
	}
	return nil
}

// hits are how many pictures count as recovered.
func hits(scores []attackScore) (n int) {
	for _, s := range scores {
		if (audit.Quality{PSNR: s.PSNR}).Success() {
			n++
		}
	}
	return n
}

func studyOf(plan effort, cells [][][]cell, d victims) (study.Study, error) {
	var claims papersClaims
	if err := lab.Expected("dlg.json", &claims); err != nil {
		return study.Study{}, err
	}
	s := study.Study{
		Intro: []string{
			"A client trains one step on one picture and sends its parameters, each layer with Laplace noise whose length is nu times the layer's own update. The server subtracts what it sent out and looks for the picture.",
			"DLG searches a picture and a label whose gradient is the observed one. The closed form reads the input of the first linear layer off that layer's gradient, by its leading singular vectors; behind convolutions it then looks for the picture with these features by least squares.",
			"Figures are medians over pictures, each of another writer, with the middle 80 %. A picture counts as recovered above 25 dB.",
		},
		Caveats: []string{
			"Where DLG fails, DLG fails: that is no protection. The closed form, on the same updates, shows what else the server can do, and other attacks may do better still.",
			"The papers' n/nu is no guarantee here: 1,206,590 parameters at nu = 15 lose 80,439. The noise follows each layer's own length, which is private: heuristic.",
			"This is the attacker's best case: one example, one step, untrained parameters. Larger batches and more steps make it harder.",
			"The papers replace ReLUs by sigmoids for DLG's sake. For the closed form that is no advantage: see the network as clients train it.",
			"The pictures are UNIPEN's, as this program's clients hold them, not FEMNIST's. The text does not say how parameters start; LeNet's are those of DLG's authors, the papers' network starts at three times PyTorch's default, without which less of the picture reaches the gradient.",
			"The papers show pictures and no figures: only their prose can be compared.",
		},
	}
	psnr := study.Chart{Title: "How near the recovered picture comes", XTitle: "noise multiplier nu", YTitle: "PSNR in dB, at most 100", LogX: true, Note: "median and the middle 80 % of pictures; above 25 dB a picture counts as recovered"}
	ssim := study.Chart{Title: "How alike it looks", XTitle: "noise multiplier nu", YTitle: "structural similarity (SSIM)", LogX: true, Note: "median and the middle 80 % of pictures; equal pictures have 1"}
	var judged []study.Row
	for i, n := range plan.networks {
		for _, name := range n.attacks() {
			a, b := study.Series{Name: name + ", " + n.name}, study.Series{Name: name + ", " + n.name}
			for j, nu := range plan.noise {
				var scores []attackScore
				for _, c := range cells[i][j] {
					scores = append(scores, c.score(name))
				}
				rows, p, q := rowsOf(n, name, nu, scores)
				if name == attackDLG && n.papers && !plan.sketch {
					judged = append(judged, claims.rows(n, nu, scores)...)
				}
				s.Rows = append(s.Rows, rows...)
				a.Points = append(a.Points, p.At(nu))
				b.Points = append(b.Points, q.At(nu))
			}
			psnr.Series, ssim.Series = append(psnr.Series, a), append(ssim.Series, b)
			for k := range min(2, len(d.pictures)) {
				s.Strips = append(s.Strips, stripOf(n, name, plan.noise, cells[i], k))
			}
		}
	}
	control, err := controlRows(d)
	if err != nil {
		return study.Study{}, err
	}
	s.Rows = slices.Concat(judged, s.Rows, control)
	s.Charts = []study.Chart{psnr, ssim}
	return s, nil
}

// score is what one attack made of the cell.
func (c cell) score(attack string) attackScore {
	if attack == attackDLG {
		return *c.DLG
	}
	return *c.Closed
}

// rowsOf are one attack's figures at one noise level, and the spreads of
// both measures.
func rowsOf(n network, attack string, nu float64, scores []attackScore) ([]study.Row, lab.Spread, lab.Spread) {
	psnr := lab.Quantiles(lab.Pick(scores, func(s attackScore) float64 { return s.PSNR }))
	ssim := lab.Quantiles(lab.Pick(scores, func(s attackScore) float64 { return s.SSIM }))
	recovered := float64(hits(scores)) / float64(len(scores))
	labels := lab.Share(scores, func(s attackScore) bool { return s.Label })
	row := func(metric, unit string) study.Row {
		return study.Row{
			Section: attack + ": " + n.title, Label: fmt.Sprintf("nu %v", nu), Metric: metric, Unit: unit, Verdict: study.NoNumber,
			Settings: map[string]any{"nu": nu, "network": n.name, "attack": attack, "samples": len(scores)},
		}
	}
	a, b, c := lab.Measured(row("PSNR", "dB"), psnr), lab.Measured(row("SSIM", ""), ssim), lab.Measured(row("recovered", "share"), lab.Exactly(recovered))
	a.Note = fmt.Sprintf("label found in %.0f %%", 100*labels)
	if attack == attackClosed && n.name != "dense" {
		features := lab.Quantiles(lab.Pick(scores, func(s attackScore) float64 { return s.Features }))
		a.Note += fmt.Sprintf("; cosine of the linear layer's recovered and true input %.3f", features.Middle)
	}
	return []study.Row{a, b, c}, psnr, ssim
}

func stripOf(n network, attack string, noise []float64, cells [][]cell, sample int) study.Strip {
	strip := study.Strip{Title: fmt.Sprintf("%s, %s, picture %d", attack, n.name, sample+1)}
	if attack == attackDLG {
		strip.Title = "Figure 5: " + strip.Title
	}
	picture := func(caption string, pixels []byte) {
		strip.Pictures = append(strip.Pictures, study.Picture{Caption: caption, Height: 28, Width: 28, Pixels: pixels})
	}
	picture("original", cells[0][sample].Original)
	for j, nu := range noise {
		score := cells[j][sample].score(attack)
		picture(fmt.Sprintf("nu %v: %.0f dB", nu, score.PSNR), score.Picture) // one line below a picture
	}
	return strip
}

// controlRows are what one can say without any update: the mean picture of other
// writers.
func controlRows(d victims) ([]study.Row, error) {
	var scores []attackScore
	for _, x := range d.pictures {
		q, err := audit.Judge(x.Pixels, d.mean, 28, 28)
		if err != nil {
			return nil, err
		}
		scores = append(scores, attackScore{PSNR: q.PSNR, SSIM: q.SSIM})
	}
	rows, _, _ := rowsOf(network{name: "none", title: "the mean picture of other writers"}, "Without any update", 0, scores)
	for i := range rows {
		rows[i].Label, rows[i].Note = "no update", "control: an attack below this has found nothing"
		rows[i].Settings = map[string]any{"samples": len(d.pictures)}
	}
	return rows, nil
}
