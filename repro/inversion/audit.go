package inversion

import (
	"fmt"
	"strings"

	"github.com/coterie-fl/coterie/audit"
	"github.com/coterie-fl/coterie/dp/event"
	"github.com/coterie-fl/coterie/model"
	"github.com/coterie-fl/coterie/report/prose"
	"github.com/coterie-fl/coterie/report/study"
)

// auditCaveats stand above every result of an attack.
var auditCaveats = []string{
	"An attack that fails shows nothing about other attacks. Only the privacy statement of a run does.",
	"The server is assumed to know the step size and the number of steps.",
}

// auditPage is what both pages share. Neither has a paper to compare with.
func auditPage(of, scale string, seeds int, version string, intro ...string) study.Study {
	return study.Study{
		ID: "inversion", Title: "What could the server see of an update of " + of + "?", Scale: scale, Seeds: seeds,
		Intro: intro, Caveats: auditCaveats, Version: version, Kernel: model.Kernel(), Command: "coterie audit inversion",
	}
}

func attackRow(section, label, metric, unit, note string, value event.Number) study.Row {
	return study.Row{
		Section: section, Label: label, Metric: metric, Unit: unit, Note: note,
		Settings: map[string]any{"attack": label}, Measured: &value,
	}
}

// InspectionPage shows what could be seen of a client's update.
func InspectionPage(i audit.Inspection, name, version string) study.Study {
	s := auditPage("the run "+name, "one update", 1, version,
		fmt.Sprintf("Client %d trained %s on %s in %s and sent them with noise multiplier %v. Claim: %s.",
			i.Client, prose.Counted(i.Parameters, "parameter", "parameters"), prose.Counted(i.Examples, strings.TrimSuffix(i.Kind, "s"), i.Kind),
			prose.Counted(i.Steps, "step", "steps"), float64(i.NoiseMultiplier), i.Privacy.Claim),
		i.Verdict+".",
		"Every attack is held against the client's example that it comes nearest to. The control is the mean example of other clients, which needs no update.")
	const section = "What the attacks find"
	for _, f := range i.Attacks {
		if f.Fault != "" {
			s.Caveats = append(s.Caveats, fmt.Sprintf("%s could not be made: %s", f.Attack, f.Fault))
			continue
		}
		note := ""
		if f.Attack == audit.NameGuess {
			note = "control: the mean example of other clients, which needs no update"
		}
		if f.Label != nil && f.TrueLabel != nil {
			note = fmt.Sprintf("label %d, truly %d", *f.Label, *f.TrueLabel)
		}
		if f.PSNR != nil {
			s.Rows = append(s.Rows, attackRow(section, f.Attack, "PSNR", "dB", note, *f.PSNR), attackRow(section, f.Attack, "SSIM", "", note, *f.SSIM))
		}
		if f.Error != nil {
			s.Rows = append(s.Rows, attackRow(section, f.Attack, "relative error", "", "below 0.05 a row counts as recovered", *f.Error))
		}
		s.Rows = append(s.Rows, attackRow(section, f.Attack, "cosine", "", note, f.Cosine))
		if i.Kind == "pictures" {
			s.Strips = append(s.Strips, attackStrip(f.Attack, [][]float64{f.Original, f.Found}, []string{"original", f.Attack}))
		}
	}
	return s
}

// SurveyPage shows how attacks fare on several pictures.
func SurveyPage(v audit.Survey, version string) study.Study {
	how := "as one vector"
	if v.PerLayer {
		how = "layer by layer"
	}
	s := auditPage("one picture", "survey", v.Samples, version,
		fmt.Sprintf("A client trains one step of the network %s (%d parameters) on one picture and sends it with noise multiplier %v, %s. Claim: %s.",
			v.Network, v.Parameters, float64(v.NoiseMultiplier), how, v.Claim),
		v.Verdict+".")
	const section = "Medians over the pictures"
	for _, a := range v.Attacks {
		s.Rows = append(s.Rows,
			attackRow(section, a.Attack, "PSNR", "dB", fmt.Sprintf("label found in %.0f %%", 100*float64(a.Labels)), a.PSNR),
			attackRow(section, a.Attack, "SSIM", "", "", a.SSIM), attackRow(section, a.Attack, "recovered", "share", "above 25 dB", a.Recovered))
	}
	for i, t := range v.Trials {
		pictures, captions := [][]float64{t.Picture.Pixels, t.Closed.Picture}, []string{"original", audit.NameClosedForm}
		if t.DLG != nil {
			pictures, captions = append(pictures, t.DLG.Picture), append(captions, audit.NameDLG)
		}
		s.Strips = append(s.Strips, attackStrip(fmt.Sprintf("picture %d", i+1), pictures, captions))
	}
	return s
}

func attackStrip(title string, pictures [][]float64, captions []string) study.Strip {
	strip := study.Strip{Title: title}
	for i, p := range pictures {
		strip.Pictures = append(strip.Pictures, study.Picture{Caption: captions[i], Height: side, Width: len(p) / side, Pixels: audit.Bytes(p)})
	}
	return strip
}

// side is the height of all pictures of handwriting here.
const side = 28
