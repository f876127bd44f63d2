package cmd

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/org"
)

// defaultAddress is where serve listens unless somebody says otherwise.
const defaultAddress = "127.0.0.1:7464"

// serveOptions are the flags of serve.
type serveOptions struct {
	address string
}

func newServeCommand(c *common) *cobra.Command {
	o := &serveOptions{}
	cmd := &cobra.Command{
		Use:   "serve [--addr HOST:PORT] [-f …]",
		Short: "Run the organization and answer programs over HTTP",
		Long: `Run the organization of the data directory: put the configuration of -f in
force, take up all unfinished tasks, and answer on the data directory's socket
and over HTTP until SIGTERM or Ctrl-C. Then it takes no more requests, ends
streams, lets running turns stop at their next step, and exits with 0; what was
under way goes on with the next serve, or with run --resume. A second signal
ends it at once.

Without -f the roles are those of the data directory, and unfinished tasks go
on with the configuration that the youngest of them was started with.

Who asks over HTTP needs a bearer token: see "rolecall token --help". Without an
operator's token in the configuration, serve on a loopback address prints a URL
with a start-up token, whose holder is the operator until the process ends. An
address that other hosts reach needs tokens in the configuration.`,
		Example: `  rolecall serve -f org.yaml
  rolecall serve -f org.yaml --addr 127.0.0.1:0
  ROLECALL_URL=http://127.0.0.1:7464 ROLECALL_TOKEN=rc_… rolecall tool list`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return serveFunc(cmd.Context(), c, o) },
	}
	cmd.Flags().StringVar(&o.address, "addr", "", "listen on this `address`; the configuration's, or "+defaultAddress)
	return cmd
}

func serveFunc(ctx context.Context, c *common, o *serveOptions) error {
	cfg, err := loadConfig(c)
	if err != nil {
		return err
	}
	return withApp(ctx, c, func(ctx context.Context, h *App) error {
		f, err := h.listenHTTP(c, o, cfg)
		if err != nil {
			return err
		}
		if err := h.startup(ctx, c, cfg); err != nil {
			return errors.Join(err, f.Close())
		}
		defer h.watchConfig(ctx, c)()
		if err := f.printAddress(c); err != nil {
			return errors.Join(err, f.Close())
		}
		raiseGCPercent()
		err = gateway.Serve(ctx, f.Listener, f.handler)
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			err = errors.Join(cause, err)
		}
		return err
	})
}

// raiseGCPercent has the collector wait for twice as much garbage as it would: next to
// nothing of a call stays. It is said when all is loaded, which leaves a lot, and
// GOGC has the last word.
func raiseGCPercent() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
}

// httpServer is the part of a house that others reach over TCP.
type httpServer struct {
	net.Listener
	handler http.Handler
	token   string // to start with; "" when the configuration has an operator's
}

// listenHTTP listens where the flags or else the configuration say.
func (h *App) listenHTTP(c *common, o *serveOptions, cfg *config.Config) (*httpServer, error) {
	var said config.Gateway
	if cfg != nil {
		said = cfg.Gateway
	}
	handler, err := h.api(c)
	if err != nil {
		return nil, err
	}
	door := gateway.HostCheck{Hosts: said.Hosts, Origins: said.Origins, Tokens: h.tokens, OnRefused: h.metrics.Refused}
	f := &httpServer{handler: door.Wrap(handler)}
	address := defaultAddress
	for _, a := range []string{said.Address, o.address} {
		if a != "" {
			address = a
		}
	}
	if f.Listener, err = gateway.ListenTCP(address, len(said.Tokens) > 0); err != nil {
		return nil, err
	}
	if at, ok := f.Addr().(*net.TCPAddr); ok && at.IP.IsLoopback() && !hasOperator(said.Tokens) {
		f.token = h.tokens.Startup()
	}
	return f, nil
}

func hasOperator(tokens []config.Token) bool {
	for _, t := range tokens {
		if t.Operator {
			return true
		}
	}
	return false
}

// serveOutput is what serve says with --json.
type serveOutput struct {
	Socket string `json:"socket"`
	URL    string `json:"url"`
	Token  string `json:"token,omitempty"` // the start-up token
}

// printAddress says where the house answers: on stderr, and with --json on stdout.
func (f *httpServer) printAddress(c *common) error {
	shown := serveOutput{Socket: filepath.Join(c.data, gateway.SocketName), URL: "http://" + f.Addr().String(), Token: f.token}
	fmt.Fprintf(c.err, "serving %s\n", shown.Socket)
	if f.token == "" {
		fmt.Fprintf(c.err, "serving %s\n", shown.URL)
	} else {
		fmt.Fprintf(c.err, "serving %s/?token=%s\n", shown.URL, f.token)
	}
	if at, ok := f.Addr().(*net.TCPAddr); ok && !at.IP.IsLoopback() {
		fmt.Fprintln(c.err, "tokens and answers cross the network in the clear; put a proxy before it that ends TLS")
	}
	if !c.json {
		return nil
	}
	return printJSON(c.out, shown)
}

// startup puts the configuration in force and goes on with all unfinished tasks.
func (h *App) startup(ctx context.Context, c *common, cfg *config.Config) error {
	unfinished := h.unfinished()
	recorded := ""
	var err error
	switch {
	case cfg != nil:
		err = h.configure(ctx, cfg, nil)
	case len(unfinished) > 0 && unfinished[len(unfinished)-1].Config != "":
		recorded = unfinished[len(unfinished)-1].Config
		if cfg, err = h.recorded(ctx, c, recorded); err == nil {
			err = h.restoreConfig(ctx, cfg)
		}
	}
	if err != nil {
		return err
	}
	for _, note := range h.models.Load().notes {
		fmt.Fprintln(h.screen, "~ "+clean(note))
	}
	for _, task := range unfinished {
		if recorded != "" && task.Config != recorded {
			h.reportUnresumed(c, task, "it was started with another configuration")
			continue
		}
		if err := h.resumeTask(ctx, task); err != nil {
			h.reportUnresumed(c, task, clean(err.Error()))
		}
	}
	return nil
}

// unfinished lists the tasks that have not ended, oldest first.
func (h *App) unfinished() (list []org.Task) {
	for _, task := range h.rt.Org().Tasks() {
		if task.Status == org.Running {
			list = append(list, task)
		}
	}
	return list
}

// resumeTask takes a task up again, unless nothing could think for it.
func (h *App) resumeTask(ctx context.Context, task org.Task) error {
	if len(h.models.Load().byName)+len(h.models.Load().errors) == 0 {
		return errors.New("no model is configured")
	}
	if _, err := h.model(""); err != nil {
		return err
	}
	return h.rt.Resume(ctx, task.ID)
}

// reportUnresumed says that a task stays where it is.
func (h *App) reportUnresumed(c *common, task org.Task, why string) {
	fmt.Fprintf(h.screen, "task %s waits: %s; go on with: %s run --resume %s%s\n", task.ID, why, program(), task.ID, c.dataFlag())
}

// tokensOf gives the tokens that a configuration lists.
func tokensOf(cfg *config.Config) ([]gateway.Token, error) {
	var list []gateway.Token
	for _, t := range cfg.Gateway.Tokens {
		token := gateway.Token{Name: t.Name, Role: t.Role, Operator: t.Operator, Audience: t.Audience, Expires: t.Expires}
		if n, err := hex.Decode(token.Digest[:], []byte(t.SHA256)); err != nil || n != len(token.Digest) {
			return nil, cfg.Fault(t.Pos, "sha256", "is no SHA-256", "")
		}
		list = append(list, token)
	}
	return list, nil
}
