package cmd

import (
	"bufio"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/textutil"
)

// loginOptions are the flags of mcp login.
type loginOptions struct {
	noBrowser bool
	issuer    string
	port      uint16
}

func newMCPLoginCommand(c *common) *cobra.Command {
	o := &loginOptions{}
	cmd := &cobra.Command{
		Use:   "login NAME",
		Short: "Log in to an MCP server that requires OAuth",
		Long: `Log in to an MCP server whose configuration has auth: {oauth: …}. The command opens the
page of the server's issuer in a browser, and waits until the issuer has sent the browser
back to this machine. rolecall stores the token sealed, and refreshes it. The command does
not see it.

Without ROLECALL_TOKEN the login is that of the operator. With it, the login is that of the
holder of this token, for a server with credentials: {per: caller}.

With --no-browser the command prints the address of the page. If the browser is on another
machine, it cannot reach this one at the end: paste the address that it shows then.

When a server names another issuer than before, its logins end. --issuer says which one the
operator trusts now.`,
		Example: `  rolecall mcp login web -f org.yaml
  ROLECALL_URL=https://agents.example.com ROLECALL_TOKEN=$TOKEN rolecall mcp login web`,
		Args: exactArgs(1, "the name of one MCP server"),
		RunE: withClient(c, createIfMissing, func(ctx context.Context, api *client.Client, args []string) error {
			return runMCPLogin(ctx, c, api, args[0], o)
		}),
	}
	cmd.Flags().BoolVar(&o.noBrowser, "no-browser", false, "print the address of the page, and open no browser")
	cmd.Flags().StringVar(&o.issuer, "issuer", "", "trust this `issuer`, if the server names another one than before")
	cmd.Flags().Uint16Var(&o.port, "port", 0, "listen on this `port`, if the issuer accepts no other; 0 is any")
	return cmd
}

func newMCPLogoutCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "logout NAME",
		Short: "Forget a login at an MCP server",
		Long: `Forget the login of the operator at an MCP server, or with ROLECALL_TOKEN that of the
token's holder. The server's issuer is not told.`,
		Example: "  rolecall mcp logout web -f org.yaml",
		Args:    exactArgs(1, "the name of one MCP server"),
		RunE: withClient(c, readWrite, func(ctx context.Context, api *client.Client, args []string) error {
			login, err := api.Logout(ctx, args[0])
			if err != nil {
				return err
			}
			return printLogin(c, "logged out of", args[0], login)
		}),
	}
}

func newMCPLoginsCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:     "logins",
		Short:   "List the logins at MCP servers, without their tokens",
		Example: "  rolecall mcp logins -f org.yaml",
		Args:    exactArgs(0, "no arguments"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, _ []string) error {
			return runMCPLogins(ctx, c, api)
		}),
	}
}

// runMCPLogins prints the logins. A server without one is a line, too.
func runMCPLogins(ctx context.Context, c *common, api *client.Client) error {
	type line struct {
		Server string `json:"server"`
		client.MCPLogin
	}
	lines := func(yield func(line, error) bool) {
		for s, err := range api.ListMCPServers(ctx) {
			if err == nil && len(s.Logins) == 0 {
				s.Logins = []client.MCPLogin{{}}
			}
			for _, l := range s.Logins {
				if !yield(line{s.Name, l}, nil) {
					return
				}
			}
			if err != nil && !yield(line{}, err) {
				return
			}
		}
	}
	return printList(c.out, c.json, lines, []string{"SERVER", "LOGIN", "ISSUER", "SINCE", "STATE"}, func(l line) []string {
		switch {
		case l.Subject == "":
			return []string{l.Server, "-", "-", "-", "none"}
		case l.Ended:
			return []string{l.Server, l.Subject, l.Issuer, l.At.UTC().Format(time.RFC3339), "ended"}
		}
		return []string{l.Server, l.Subject, l.Issuer, l.At.UTC().Format(time.RFC3339), "active"}
	})
}

// printLogin prints what became of a login.
func printLogin(c *common, verb, server string, login client.MCPLogin) error {
	if c.json {
		return printJSON(c.out, login)
	}
	_, err := fmt.Fprintf(c.out, "%s %s as %s, at %s\n", verb, textutil.Sanitize(server), textutil.Sanitize(login.Subject), textutil.Sanitize(login.Issuer))
	return err
}

// runMCPLogin logs in: it listens for the browser, shows the page of the issuer, and passes on what
// the browser brings.
func runMCPLogin(ctx context.Context, c *common, api *client.Client, server string, o *loginOptions) error {
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(o.port))))
	if err != nil {
		return fmt.Errorf("listen for the browser: %w", err)
	}
	defer listener.Close()
	offer, err := api.BeginLogin(ctx, server, client.MCPLoginRequest{Redirect: "http://" + listener.Addr().String() + "/callback", Issuer: o.issuer})
	if err != nil {
		return err
	}
	if err := checkBrowserURL(offer.URL); err != nil {
		return fmt.Errorf("log in to %s: %w", server, err)
	}
	answers := make(chan url.Values, 1)
	stop := serveCallback(listener, stateOf(offer.URL), answers)
	defer stop()
	closePage, err := c.showPage(server, offer, o)
	if err != nil {
		return err
	}
	defer closePage()
	if o.noBrowser {
		go readPasted(c.in, stateOf(offer.URL), answers)
	}
	select {
	case q := <-answers:
		login, err := api.FinishLogin(ctx, server, offer.ID, client.MCPLoginAnswer{Code: q.Get("code"), State: q.Get("state"), Issuer: q.Get("iss"), Error: q.Get("error")})
		if err != nil {
			return err
		}
		return printLogin(c, "logged in to", server, login)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(loginTimeout):
		return fmt.Errorf("log in to %s: the browser did not come back within %v; begin again", server, loginTimeout)
	}
}

// loginTimeout is how long a person may take. The server waits as long.
const loginTimeout = 10 * time.Minute

// showPage tells the person where to log in, and opens the page unless that is not wanted. closePage
// must be called when the login has ended.
func (c *common) showPage(server string, offer client.MCPLoginOffer, o *loginOptions) (closePage func(), err error) {
	scopes := ""
	if len(offer.Scopes) > 0 {
		scopes = " with the scopes " + strings.Join(offer.Scopes, " ")
	}
	if _, err := fmt.Fprintf(c.err, "Log in to %s at %s%s:\n\n    %s\n\n", textutil.Sanitize(server), textutil.Sanitize(offer.Issuer), textutil.Sanitize(scopes), textutil.Sanitize(offer.URL)); err != nil {
		return nil, err
	}
	if o.noBrowser {
		return func() {}, nil
	}
	page, closePage, err := writeLoginPage(offer.URL)
	if err != nil {
		fmt.Fprintf(c.err, "No browser was opened (%s). Open the address yourself.\n", textutil.Sanitize(err.Error()))
		return func() {}, nil
	}
	open := c.openBrowser
	if open == nil {
		open = openBrowser
	}
	if err := open(page); err != nil {
		fmt.Fprintf(c.err, "No browser was opened (%s). Open the address yourself.\n", textutil.Sanitize(err.Error()))
	}
	return closePage, nil
}

// stateOf returns the state in an authorization URL, which comes back with the answer.
func stateOf(authorization string) string {
	u, err := url.Parse(authorization)
	if err != nil {
		return ""
	}
	return u.Query().Get("state")
}

// isAnswer reports whether a query is an answer to the request with a state.
func isAnswer(q url.Values, state string) bool {
	return state != "" && len(q["state"]) == 1 && subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(state)) == 1 &&
		!slices.ContainsFunc([]string{"code", "iss", "error"}, func(name string) bool { return len(q[name]) > 1 })
}

// serveCallback serves the page to which the issuer sends the browser, until stop is called. The
// first answer with the state of the request is put into answers.
func serveCallback(listener net.Listener, state string, answers chan<- url.Values) (stop func()) {
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cache-Control", "no-store")
		if r.Method != http.MethodGet || r.URL.Path != "/callback" || !isAnswer(r.URL.Query(), state) {
			http.Error(w, "This is not the answer that rolecall waits for.", http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, "rolecall goes on in your terminal. You can close this page.\n")
		select {
		case answers <- r.URL.Query():
		default: // there is an answer already
		}
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // until stop
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if errors.Is(server.Shutdown(ctx), context.DeadlineExceeded) {
			_ = server.Close()
		}
		<-done
	}
}

// readPasted reads addresses that the person pastes, until one is the answer.
func readPasted(in io.Reader, state string, answers chan<- url.Values) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		u, err := url.Parse(strings.TrimSpace(lines.Text()))
		if err != nil || !isAnswer(u.Query(), state) {
			continue
		}
		select {
		case answers <- u.Query():
		default:
		}
		return
	}
}
