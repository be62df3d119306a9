package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNothingIsWrittenOverWhatIsRead: a command that is told to write a file over one that
// it reads, by whatever name, refuses, and the file stays; others are replaced.
func TestNothingIsWrittenOverWhatIsRead(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"run.yaml": clinicRun, "clinic.csv": "site,ill,age,ward,part\nN,yes,50,A,train\nN,no,12,B,test\nS,1,12,A,train\nS,no,10,B,test\n", "words.txt": strings.Repeat("to be or not to be ", 30)})
	in := func(name ...string) string { return filepath.Join(append([]string{dir}, name...)...) }
	result, data := in("result"), in("clinic.csv")
	if _, stderr, code := coterie(t, "run", in("run.yaml"), "--set", "algorithm.rounds=1", "--out", result); code != 0 {
		t.Fatal(stderr)
	}
	for name, err := range map[string]error{"linked.csv": os.Link(data, in("linked.csv")), "symbol.csv": os.Symlink(data, in("symbol.csv")), "more": os.Mkdir(in("more"), 0o700), "more/a.csv": os.Link(data, in("more", "a.csv"))} {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	predict := []string{"predict", result, "--client", "N", "--data", data, "--out"}
	for _, args := range [][]string{
		append(predict, data), append(predict, in("result", "..", "clinic.csv")), append(predict, in("linked.csv")), append(predict, in("symbol.csv")),
		append(predict, in("result", "model.safetensors")), append(predict, in("result", "result.json")),
		{"predict", result, "--data", in("more"), "--out", in("more", "a.csv")}, {"predict", result, "--client", "N", "--data", in("c*.csv"), "--out", data},
		{"export", result, "--client", "N", "--out", in("result", "model.json")}, {"data", "vocabulary", in("words.txt"), "--size", "257", "--out", in("words.txt")},
		{"data", "check", in("run.yaml"), "--report", in("run.yaml")},
	} {
		before, err := os.ReadFile(args[len(args)-1])
		if err != nil {
			t.Fatal(err)
		}
		_, stderr, code := coterie(t, args...)
		if code != exitUsage || !strings.Contains(stderr, "would replace") || !strings.Contains(stderr, "name another file") {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
		if after, err := os.ReadFile(args[len(args)-1]); err != nil || string(after) != string(before) {
			t.Errorf("%v: what was there is gone; %v", args, err)
		}
	}
	for range 2 { // what a command wrote before is no input
		if _, stderr, code := coterie(t, append(predict, in("result", "predictions.csv"))...); code != 0 {
			t.Errorf("exit %d: %s", code, stderr)
		}
	}
	if _, stderr, code := coterie(t, append(predict, in("more"))...); code == 0 || !strings.Contains(stderr, in("more")+": it is a folder; name a file in it") || strings.Contains(stderr, ".new-") {
		t.Errorf("a folder: exit %d, %s", code, stderr)
	}
	if _, stderr, code := coterie(t, "predict", result, "--data", in("nope.csv")); code == 0 || !strings.Contains(stderr, `--data "`+in("nope.csv")+`" names no file`) {
		t.Errorf("no data: exit %d, %s", code, stderr)
	}
}
