package main

import (
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coterie-fl/coterie/web/live"
)

func (a *app) newDashCommand() *cobra.Command {
	var f struct{ listen, identity string }
	cmd := &cobra.Command{
		Use:   "dash [DIR | FILE | URL]",
		Short: "The live page: runs, sweeps, ledgers or a federation as they go, in a browser",
		Long: "Show what goes on in a browser, read-only, until Ctrl-C: runs, sweeps, studies and ledgers below a folder (default ./coterie-runs),\n" +
			"or a federation. At its server FILE is that of coterie serve; elsewhere URL is the server's address, and --identity the folder\n" +
			"of an operator's identity. The address that is printed ends in a secret: who has it sees the page.",
		Example: "  coterie dash\n  coterie dash result\n  coterie dash serve.yaml\n  coterie dash https://federation.example:7443 --identity watch",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "coterie-runs"
			if len(args) > 0 {
				what = args[0]
			}
			source, end, err := a.dashSource(cmd, what, f.identity)
			if err != nil {
				return err
			}
			defer end()
			return a.dash(cmd, source, f.listen)
		},
	}
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:0", "address of the page, host:port; port 0 is any that is free. The page is not encrypted: beyond this machine put a tunnel or a proxy before it")
	cmd.Flags().StringVar(&f.identity, "identity", "", "folder of an operator's identity, with a URL")
	return cmd
}

// dashSource is what is to be shown: a folder, or a server.
func (a *app) dashSource(cmd *cobra.Command, what, identity string) (source live.Source, end func(), err error) {
	info, err := os.Stat(what)
	if err == nil && info.IsDir() {
		if identity != "" {
			return nil, nil, fmt.Errorf("%w: --identity goes with the URL of a server, and %s is a folder", errUsage, what)
		}
		folder, err := live.NewFolder(what)
		if err != nil {
			return nil, nil, err
		}
		return folder, func() { folder.Close() }, nil
	}
	if err != nil && identity == "" {
		return nil, nil, fmt.Errorf("%w: there is no folder %s; name a folder of runs, a serve file, or the URL of a server with --identity DIR", errUsage, what)
	}
	args, address := []string{what}, ""
	if identity != "" {
		args, address = nil, strings.TrimSuffix(strings.TrimPrefix(what, "https://"), "/")
	}
	o, err := a.operator(cmd, args, identity, address)
	if err != nil {
		return nil, nil, err
	}
	return live.NewFederation(o.Status), o.Close, nil
}

// dash serves the page until the command ends.
func (a *app) dash(cmd *cobra.Command, source live.Source, listen string) error {
	log, err := a.logger("warn")
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("listen on %s for the page: %w", listen, err)
	}
	host, _, _ := net.SplitHostPort(listen)
	door := live.NewDoor(live.NewToken(), live.New(source, version()), host)
	address := door.Address(l.Addr().String())
	if err := a.tell(map[string]string{"url": address}, "%s\nCtrl-C ends the page; what it shows goes on.", address); err != nil {
		return err
	}
	if a.quiet { // the address is the result, not a remark
		if err := a.printLines(address); err != nil {
			return err
		}
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		log.Warn("the page is not encrypted, and reachable from other machines: put a tunnel or a proxy with TLS before it", "listen", listen)
	}
	return live.Serve(cmd.Context(), l, door, log)
}
