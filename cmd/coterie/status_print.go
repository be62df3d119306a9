package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/coterie-fl/coterie/federation/server"
)

// printStatus tells people how a server stands.
func printStatus(w io.Writer, address string, st server.Status) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(out, "%s\t%s at %s\n", st.Name, st.RunID, address)
	fmt.Fprintf(out, "state\t%s\n", describeState(st))
	if st.Asked > 0 {
		fmt.Fprintf(out, "answers\t%d of %d released, %d declined; %d close the round, with fewer than %d it is abandoned\n",
			st.Released, st.Asked, st.Declined, st.Quorum, st.Minimum)
	}
	fmt.Fprintf(out, "there\t%d of %d participants\n\n", st.Connected, len(st.Participants))
	fmt.Fprintln(out, "NAME\tTHERE\tLAST HEARD\tTHIS ROUND\tRELEASES\tMODELS\tCERTIFICATE ENDS")
	for _, p := range st.Participants {
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", p.Name, describePresence(st, p), describeAgo(st.Now, p.LastHeard), describeAnswer(p),
			p.Released, map[bool]string{true: "fetched", false: "-"}[p.Fetched], describeDay(p.CertificateExpires))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	told := false
	for _, p := range st.Participants {
		for _, s := range p.Spent {
			if !told {
				fmt.Fprintln(w, "\nSpent, as they said when they last released:")
				told = true
			}
			in := ""
			if s.RunID != st.RunID {
				in = " of run " + s.RunID
			}
			who, _, _ := strings.Cut(string(s.Privacy.Trust), " ")
			if who != "nobody" {
				who = "the " + who
			}
			fmt.Fprintf(w, "  %s: %s (claim %s, unit %s, relation %s, noise by %s), at round %d%s\n",
				p.Name, describeLoss(s.Privacy), s.Privacy.Claim, s.Privacy.Unit, s.Privacy.Relation, who, s.Round, in)
		}
	}
	return nil
}

func describeState(st server.Status) string {
	text := fmt.Sprintf("%s, round %d of %d", st.State, st.Round, st.Rounds)
	if st.State == server.StateFinished {
		text = fmt.Sprintf("%s, after %d of %d rounds (stopped: %s)", st.State, st.Round, st.Rounds, st.Stopped)
	}
	if st.Abandoned > 0 {
		text += fmt.Sprintf(", %d abandoned", st.Abandoned)
	}
	if st.Opened != nil && st.RoundSecondsLeft != nil {
		text += fmt.Sprintf("; opened %s ago, %s left", span(st.Now.Sub(*st.Opened)), span(seconds(*st.RoundSecondsLeft)))
	}
	if st.RunSecondsLeft != nil {
		text += fmt.Sprintf("; about %s for the rest of the run", span(seconds(*st.RunSecondsLeft)))
	}
	return text
}

func describePresence(st server.Status, p server.ParticipantStatus) string {
	switch {
	case p.Connected && p.Since != nil:
		return "yes, for " + span(st.Now.Sub(*p.Since))
	case p.Connected:
		return "yes"
	case p.Left || p.Fetched:
		return "has left"
	case p.Since == nil:
		return fmt.Sprintf("MISSING, not seen since the server was started %s ago", span(st.Now.Sub(st.Started)))
	}
	return fmt.Sprintf("MISSING since %s, for %s", p.Since.Format("15:04:05 UTC"), span(st.Now.Sub(*p.Since)))
}

func describeAnswer(p server.ParticipantStatus) string {
	text := p.Answer
	switch {
	case !p.Asked:
		text = "not asked"
	case p.Word != "":
		text += ": " + p.Word
	}
	if p.Left {
		text += ", declines the rest"
	}
	return text
}

func describeAgo(now time.Time, at *time.Time) string {
	if at == nil {
		return "never"
	}
	return span(now.Sub(*at)) + " ago"
}

func describeDay(at *time.Time) string {
	if at == nil {
		return "has none"
	}
	return at.Format("2006-01-02 15:04 UTC")
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// span is a time that people read.
func span(d time.Duration) string { return max(0, d).Round(time.Second).String() }
