package prose

import (
	"os/exec"
	"strings"
	"testing"
)

// TestShellsReadWordsBack has bash itself read them.
func TestShellsReadWordsBack(t *testing.T) {
	for path, want := range map[string]string{
		"coterie-runs/20261115-120000-ifca-1a2b3c": "coterie-runs/20261115-120000-ifca-1a2b3c",
		"/tmp/with space/run":                      "'/tmp/with space/run'",
		"it's":                                     `'it'\''s'`,
		"-runs":                                    "./-runs",
		"- runs":                                   "'./- runs'",
		"~/runs":                                   "'~/runs'",
		"":                                         "''",
	} {
		if got := ShellWord(path); got != want {
			t.Errorf("%q is written %s, want %s", path, got, want)
		}
	}
	for _, path := range []string{
		"a b", "it's", `say "so"`, "-x", "--resume", "$HOME", "`id`", "a;b", "a&b", "a|b", "a>b", "*", "?", "[a]", "{a,b}", "!!", "#a", "~", "a\\b",
		"a\nb", "tab\there", "ü/é", "(a)", "a=b", "^a", "\x01", "''", "",
	} {
		out, err := exec.Command("bash", "-c", "printf %s "+ShellWord(path)).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimPrefix(string(out), "./"); got != path {
			t.Errorf("%q is written %s, which bash reads as %q", path, ShellWord(path), got)
		}
	}
}

// TestShellsReadFlagsBack: a value may begin with a dash, and the option stays one.
func TestShellsReadFlagsBack(t *testing.T) {
	for value, want := range map[string]string{"3": "--set=3", "-1": "--set=-1", "a=b c": "--set='a=b c'", "": "--set=''"} {
		got := ShellFlag("set", value)
		if got != want {
			t.Errorf("%q is written %s, want %s", value, got, want)
		}
		out, err := exec.Command("bash", "-c", "printf %s "+got).Output()
		if err != nil || string(out) != "--set="+value {
			t.Errorf("%s is read as %q (%v)", got, out, err)
		}
	}
}
