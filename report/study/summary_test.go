package study

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coterie-fl/coterie/dp/event"
)

func claimed(id, paper string, verdicts ...Verdict) Study {
	s := Study{ID: id, Paper: paper, Scale: "quick", Seeds: 3, Version: "v1"}
	for _, v := range verdicts {
		x := event.Number(1)
		s.Rows = append(s.Rows, Row{Section: "s", Label: "<l>", Metric: "m", Verdict: v, Measured: &x})
	}
	return s
}

// TestSummariesCountClaims: figures that no text has are no claims; every study is in its
// text's group and in the sum; and a record is read back as it was written.
func TestSummariesCountClaims(t *testing.T) {
	var records []Record
	for _, s := range []Study{
		claimed("silos", "paper 002, figure 1.3", Agrees, Agrees, Differs, NoNumber),
		claimed("synthetic", "paper 000, figure 1; thesis 001, section 2", Agrees, Incomparable, Incomparable, NoNumber),
		claimed("robust", "none of the papers"),
	} {
		folder := t.TempDir()
		if err := RecordOf(s, "2026-11-17", 90).Write(folder); err != nil {
			t.Fatal(err)
		}
		r, err := ReadRecord(filepath.Join(folder, RecordFile))
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	var terminal bytes.Buffer
	if err := Summary(&terminal, records); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Papers 000 and 004: group privacy\nsynthetic              quick      3", "silos                  quick      3", "About none of the texts\nrobust",
		"      2        1                   0\n", "      1        0                   2\n", "all                                                    3        1                   2\n",
	} {
		if !strings.Contains(terminal.String(), want) {
			t.Errorf("the summary lacks %q:\n%s", want, terminal.String())
		}
	}
	for _, want := range []string{"| `synthetic` | quick | 3 | 90 s | 2026-11-17 | v1 | 1 | 0 | 2 |\n", "| **all** | | | | | | **3** | **1** | **2** |\n"} {
		if table := Markdown(records); !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
	drawing := Drawing(records)
	for decoder := xml.NewDecoder(strings.NewReader(drawing)); ; {
		if _, err := decoder.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
	if !strings.Contains(drawing, "6 claims of the texts: 3 agree, 1 differ, 2 cannot be compared") || strings.Count(drawing, `class="differs"`) != 2 {
		t.Errorf("the picture: %s", drawing)
	}
}

// TestABrokenRecordIsNamed.
func TestABrokenRecordIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), RecordFile)
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRecord(path); err == nil || !strings.Contains(err.Error(), path+" is no record of a study") {
		t.Errorf("%v", err)
	}
}

// TestRecordsNameTheCommit: of a program that was built from a checkout a record has the
// commit, and says where files were changed after it; other versions stay what they are.
func TestRecordsNameTheCommit(t *testing.T) {
	for version, want := range map[string]string{
		"v0.0.0-20261117150107-b1096e2d9a1c":             "b1096e2",
		"v0.0.0-20261117150107-b1096e2d9a1c+dirty":       "b1096e2+dirty",
		"v0.1.1-0.20261117150107-b1096e2d9a1c":           "b1096e2",
		"v0.1.1-pre.0.20261117150107-b1096e2d9a1c+dirty": "b1096e2+dirty",
		"v1.2.3": "v1.2.3", "0.1.0-dev": "0.1.0-dev", "": "",
	} {
		if got := RecordOf(Study{Version: version}, "", 0).Version; got != want {
			t.Errorf("%q is %q, want %q", version, got, want)
		}
	}
	r := RecordOf(Study{CommittedSeconds: 50, Kernel: "go", Devices: []string{"3 cells: NVIDIA H200 (CUDA 13.0)"}}, "", 40)
	if r.took() != "90 s" || len(r.Devices) != 1 || !strings.Contains(Markdown([]Record{r}), "| 90 s, and a GPU |") {
		t.Errorf("%+v took %s", r, r.took())
	}
}
