package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/app"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/textutil"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	address             string
	workspace           string
	logFormat, logLevel string
}

func newServeCommand(c *common) *cobra.Command {
	o := &serveOptions{}
	cmd := &cobra.Command{
		Use:   "serve [--addr HOST:PORT] [-f …]",
		Short: "Run the organization and serve its API",
		Long: `Run the organization of the data directory: apply the configuration of -f, resume all
interrupted tasks, and serve the API on the data directory's socket and over HTTP until
SIGTERM or Ctrl-C. On shutdown, serve accepts no more requests, ends streams, lets
running turns stop at their next step, and exits with 0. The next serve, or
run --resume, continues the tasks. A second signal ends the process immediately.

Without -f, the roles are those of the data directory, and interrupted tasks continue
with the configuration that the most recent of them was started with.

Callers work in the workspace that the configuration sets for them, else in a private
directory for each of their roles. --workspace sets the default workspace of all callers.

The log on stderr has a time on each line. It has every denied call, every rejected
token, and by name what a reload added or removed.

HTTP requests need a bearer token: see "rolecall token create --help". If the configuration
lists no operator's token, serve on a loopback address prints a URL with a start-up
token, which allows operator access until the process ends. An address that other hosts
can reach requires tokens in the configuration.`,
		Example: `  rolecall serve -f org.yaml
  rolecall serve -f org.yaml --addr 127.0.0.1:0
  rolecall serve -f org.yaml --workspace ./reports:ro
  ROLECALL_URL=http://127.0.0.1:7464 ROLECALL_TOKEN=rc_… rolecall tool list`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := rejectTogether(cmd, "log-level", "verbose"); err != nil {
				return err
			}
			if c.logs, err = newLogFormat(o.logFormat, o.logLevel); err != nil {
				return err
			}
			return runServe(cmd.Context(), c, o)
		},
	}
	cmd.Flags().StringVar(&o.logFormat, "log-format", "text", "`format` of the log: text or json")
	cmd.Flags().StringVar(&o.logLevel, "log-level", "", "least `level` of the log: debug, info, warn or error; default: warn")
	cmd.Flags().StringVar(&o.workspace, "workspace", "", "use `DIR[:ro]` as the workspace of all callers whose token and role have none")
	cmd.Flags().StringVar(&o.address, "addr", "", "listen on this `address`; default: the configuration's, or "+app.DefaultAddress)
	return cmd
}

func runServe(ctx context.Context, c *common, o *serveOptions) error {
	cfg, err := loadConfig(c)
	if err != nil {
		return err
	}
	return withSession(ctx, c, sessionOptions{serve: true, workspace: o.workspace}, func(ctx context.Context, s *session) error {
		defer context.AfterFunc(ctx, s.MarkStopping)()
		l, err := s.ListenHTTP(o.address, cfg)
		if err != nil {
			return err
		}
		err = s.serveHTTP(ctx, l, func() (func(), error) { return s.becomeReady(ctx, c, cfg, l) })
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			err = errors.Join(cause, err)
		}
		return err
	})
}

// serveHTTP serves a listener until ctx ends or begin fails. begin runs meanwhile: requests
// for the health and the readiness are answered before the session is ready. What begin
// returns is called at the end; it may be nil.
func (s *session) serveHTTP(ctx context.Context, l *app.HTTPListener, begin func() (end func(), err error)) error {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- l.Serve(serving) }()
	end, err := begin()
	if end != nil {
		defer end()
	}
	if err != nil {
		stop()
		return errors.Join(err, <-ended)
	}
	return <-ended
}

// becomeReady applies the configuration, resumes all unfinished tasks and lets requests
// proceed. It then watches the configuration, removes files as its retention says, runs the
// triggers and sends notifications. It prints the addresses. The caller calls end.
func (s *session) becomeReady(ctx context.Context, c *common, cfg *config.Config, l *app.HTTPListener) (end func(), err error) {
	if err := s.applyAndResume(ctx, c, cfg); err != nil {
		return nil, err
	}
	s.MarkReady()
	stopWatch, stopRetention, stopTriggers, stopNotifications := s.WatchConfig(ctx), s.StartRetention(ctx), s.StartTriggers(ctx), s.StartNotifications(ctx)
	end = func() { stopNotifications(); stopTriggers(); stopRetention(); stopWatch() }
	if err := s.printAddresses(c, l); err != nil {
		return end, err
	}
	raiseGCPercent()
	return end, nil
}

// raiseGCPercent lets the heap grow further between collections, because calls leave little
// live data. It is called after loading, whose garbage is large. GOGC overrides it.
func raiseGCPercent() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
}

// serveOutput is the output of serve with --json.
type serveOutput struct {
	Socket string `json:"socket"`
	URL    string `json:"url"`
	Token  string `json:"token,omitempty"` // the start-up token

	Brokers []string `json:"brokers,omitempty"` // HOST:PORT at which tool services connect
}

// printAddresses prints the addresses of the API on stderr, and with --json on stdout.
func (s *session) printAddresses(c *common, l *app.HTTPListener) error {
	shown := serveOutput{Socket: filepath.Join(c.data, wire.SocketName), URL: l.URL(), Token: l.Token, Brokers: s.BrokerAddresses()}
	fmt.Fprintf(s.notices, "serving %s\n", shown.Socket)
	if l.Token == "" {
		fmt.Fprintf(s.notices, "serving %s\n", shown.URL)
	} else {
		fmt.Fprintf(s.notices, "serving %s/?token=%s\n", shown.URL, l.Token)
	}
	for _, address := range shown.Brokers {
		fmt.Fprintf(s.notices, "accepting tool services at nats://%s\n", address)
	}
	if !l.Encrypted() {
		fmt.Fprintln(s.notices, "tokens and answers are sent unencrypted; set tls of kind: gateway, or use a reverse proxy with TLS")
	}
	if !c.json {
		return nil
	}
	return printJSON(c.out, shown)
}

// applyAndResume applies the configuration and resumes all unfinished tasks.
func (s *session) applyAndResume(ctx context.Context, c *common, cfg *config.Config) error {
	left, err := s.ResumeAll(ctx, cfg)
	if err != nil {
		return err
	}
	s.printNotes()
	for _, u := range left {
		fmt.Fprintf(s.notices, "task %s is not resumed: %s; resume it with: %s run --resume %s%s\n", u.Task.ID, textutil.Sanitize(u.Err.Error()), programName(), u.Task.ID, c.dataFlag())
	}
	s.printPaused(c)
	return nil
}

// maxPausedLines is how many paused tasks are named at the start.
const maxPausedLines = 10

// printPaused prints which tasks wait for the operator.
func (s *session) printPaused(c *common) {
	if p := s.Runtime.Org().OrgPause(); p.IsSet() {
		fmt.Fprintf(s.notices, "the organization is paused by %s: %s; let it go on with: %s resume --all%s\n", textutil.Sanitize(p.By), textutil.Sanitize(p.Reason), programName(), c.dataFlag())
	}
	paused := s.Runtime.Org().PausedTasks(maxPausedLines + 1)
	for _, task := range paused[:min(len(paused), maxPausedLines)] {
		if why := s.Runtime.PauseOf(task.ID); why != nil {
			fmt.Fprintf(s.notices, "task %s is paused: %s; let it go on with: %s%s\n", task.ID, textutil.Sanitize(pauseText(*why)), continueCommand(task.ID, *why, ""), c.dataFlag())
		}
	}
	if len(paused) > maxPausedLines {
		fmt.Fprintf(s.notices, "more tasks are paused; list them with: %s task list --status paused%s\n", programName(), c.dataFlag())
	}
}
