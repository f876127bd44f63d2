package cmd

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/app"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/catalog"
	"github.com/rolecall/rolecall/model/provider"
)

func newModelCommand(c *common) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:     "model",
		Short:   "Test a model of a configuration",
		Example: "  rolecall model test -f org.yaml main",
	}, newModelTestCommand(c))
}

func newModelTestCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "test -f FILE NAME",
		Short: "Ask a model two short questions and report what it can do",
		Long: `Ask the model NAME of a configuration two short questions. The report says whether the
model answers, whether the answer is streamed, whether the model calls a tool, and what
that took. It compares the context window with what the server says, and lists what to
change in the document.

The model is asked directly: without its fallbacks and without retries. Nothing is
recorded. The exit status is 1 if the model does not answer. "rolecall check --online"
asks all models.`,
		Example: `  rolecall model test -f org.yaml main
  rolecall model test -f org.yaml --json main`,
		Args: exactArgs(1, "one model name"),
		RunE: func(cmd *cobra.Command, args []string) error { return runModelTest(cmd.Context(), c, args[0]) },
	}
}

func runModelTest(ctx context.Context, c *common, name string) error {
	if len(c.files) == 0 {
		return errNoConfig("model test")
	}
	cfg, err := loadConfig(c)
	if err != nil {
		return err
	}
	d, err := findModel(cfg, name)
	if err != nil {
		return err
	}
	r, err := app.ProbeModel(ctx, d)
	if err != nil {
		return err
	}
	shown := newModelReport(d, r)
	if c.json {
		err = printJSON(c.out, shown)
	} else {
		err = shown.print(c.out)
	}
	if err == nil && r.Err != nil {
		err = errReported
	}
	return err
}

// findModel returns the model that is used for a name.
func findModel(cfg *config.Config, name string) (config.Model, error) {
	var known []string
	for _, d := range cfg.Models {
		if d.Name == name {
			chosen, _ := cfg.ChooseModel(name)
			return chosen, nil
		}
		known = append(known, d.Name)
	}
	hint := textutil.SuggestName(name, known)
	switch {
	case len(known) == 0:
		hint = "it declares none"
	case hint == "":
		hint = "there are: " + joinNames(known)
	}
	return config.Model{}, usageError{fmt.Errorf("the configuration has no model %q (%s)", name, hint)}
}

// modelReport is the output of model test.
type modelReport struct {
	Model   string `json:"model"`
	Type    string `json:"type"`
	Name    string `json:"providerModel"`
	BaseURL string `json:"baseURL,omitempty"`

	Answers bool   `json:"answers"`
	Error   string `json:"error,omitempty"`
	Text    string `json:"text,omitempty"`
	Millis  int64  `json:"millis"`

	Streams   bool              `json:"streams"`
	StreamOff bool              `json:"streamOff,omitempty"` // the document has stream: false, so no stream was asked for
	Tools     bool              `json:"tools"`
	ToolError string            `json:"toolError,omitempty"`
	Usage     *model.TokenUsage `json:"usage,omitempty"` // absent if the server does not report it

	Prices *listedPrices          `json:"prices,omitempty"` // absent if the document has prices, or none are known
	Window int                    `json:"window"`
	Server *provider.ServerWindow `json:"serverWindow,omitempty"` // absent if it is not known
	Advice []string               `json:"advice"`
}

// listedPrices are known prices of a million tokens, for a document without prices.
type listedPrices struct {
	Date     string      `json:"date"`
	Currency string      `json:"currency"`
	Input    model.Money `json:"input"` // in billionths, as all prices
	Output   model.Money `json:"output"`
	Cached   model.Money `json:"cached"`
}

func newModelReport(d config.Model, r app.ModelReport) modelReport {
	shown := modelReport{
		Model: d.Name, Type: d.Type, Name: d.Model, BaseURL: d.BaseURL,
		Answers: r.Err == nil, Text: r.Text, Millis: r.Time.Milliseconds(), Streams: r.Streams, StreamOff: !d.Stream, Tools: r.CalledTool,
		Window: r.Window, Advice: append([]string{}, r.Advice...),
	}
	if r.Err != nil {
		shown.Error = errcode.Message(r.Err)
	}
	if r.ToolErr != nil {
		shown.ToolError = errcode.Message(r.ToolErr)
	}
	if r.Usage.Input+r.Usage.Output > 0 {
		shown.Usage = &r.Usage
	}
	if p := d.Prices; p.Listed {
		shown.Prices = &listedPrices{catalog.FactsDate, p.Currency, model.Money(p.Input), model.Money(p.Output), model.Money(p.Cached)}
	}
	if r.Server.Tokens > 0 {
		shown.Server = &r.Server
	}
	return shown
}

// print writes the report for people.
func (r modelReport) print(out io.Writer) error {
	at := ""
	if r.BaseURL != "" {
		at = " at " + r.BaseURL
	}
	shown := fields{{"model", fmt.Sprintf("%s (%s, %s%s)", r.Model, r.Type, r.Name, at)}}
	if !r.Answers {
		return append(shown, [2]string{"answers", "no: " + r.Error}).print(out)
	}
	took := time.Duration(r.Millis) * time.Millisecond
	shown = append(shown,
		[2]string{"answers", fmt.Sprintf("yes, in %v: %s", took, textutil.TruncateWidth(textutil.Sanitize(r.Text), maxCell))},
		[2]string{"streams", r.streamText()},
		[2]string{"calls tools", r.toolText()},
		[2]string{"tokens", r.usageText()},
		[2]string{"window", r.windowText()})
	if p := r.Prices; p != nil {
		shown = append(shown, [2]string{"prices", fmt.Sprintf("%v in, %v out, %v cached, %s for a million tokens, as of %s; set prices to change them", p.Input, p.Output, p.Cached, p.Currency, p.Date)})
	}
	for i, line := range r.Advice {
		name := "set"
		if i > 0 {
			name = ""
		}
		shown = append(shown, [2]string{name, line})
	}
	return shown.print(out)
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func (r modelReport) streamText() string {
	if r.StreamOff {
		return "not asked for: the document has stream: false"
	}
	return yesNo(r.Streams)
}

func (r modelReport) toolText() string {
	if r.ToolError != "" {
		return "not known: " + r.ToolError
	}
	return yesNo(r.Tools)
}

func (r modelReport) usageText() string {
	if r.Usage == nil {
		return "not reported"
	}
	return fmt.Sprintf("%d in, %d out", r.Usage.Input, r.Usage.Output)
}

func (r modelReport) windowText() string {
	text := strconv.Itoa(r.Window) + "; "
	switch {
	case r.Server == nil:
		return text + "what the server accepts is not known"
	case r.Server.AtMost:
		return text + fmt.Sprintf("the model has at most %d (%s); the server may be set to less", r.Server.Tokens, r.Server.Source)
	}
	return text + fmt.Sprintf("the server says %d (%s)", r.Server.Tokens, r.Server.Source)
}
