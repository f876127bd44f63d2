package toolbox

import (
	"context"
	"regexp"
	"strconv"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/database"
	"github.com/rolecall/rolecall/parameter"
	"github.com/rolecall/rolecall/tool"
)

// statement runs what the configuration says, with the values of a call.
type statement struct {
	tool     *declared
	template *parameter.Template
}

func newStatement(t *declared) (action, error) {
	template, err := t.config.Parameters.Template(t.config.Statement)
	if err != nil {
		return nil, errcode.New(errcode.InvalidConfig, "statement: %v", err)
	}
	return &statement{t, template}, nil
}

func (s *statement) run(ctx context.Context, p callerPool, v parameter.Values) (tool.Result, error) {
	text, err := s.template.Text(v)
	if err != nil {
		return tool.Result{}, err
	}
	args := bindArgs(s.tool.module.config.Source.Type, text, v)
	if err := s.tool.checkRectangular(args); err != nil {
		return tool.Result{}, err
	}
	return s.tool.query(ctx, p, text, args, s.tool.config.Parameters.FreeText())
}

// execute runs the statement of a call.
type execute struct{ tool *declared }

func newExecute(t *declared) (action, error) { return &execute{t}, nil }

func (e *execute) run(ctx context.Context, p callerPool, v parameter.Values) (tool.Result, error) {
	value, _ := v.Value(config.ParameterSQL)
	text, ok := value.(string)
	if !ok {
		return tool.Result{}, errcode.New(errcode.InvalidArguments, "parameter %q is required", config.ParameterSQL)
	}
	return e.tool.query(ctx, p, text, nil, true)
}

// query asks the database for rows; foreign says that the caller wrote the
// statement, or part of it.
func (t *declared) query(ctx context.Context, p callerPool, text string, args []any, foreign bool) (tool.Result, error) {
	rows, err := p.query(ctx, database.Query{
		SQL: text, Args: args, ReadOnly: t.definition.Effect == tool.ReadOnly, Untrusted: foreign,
		MaxRows: t.rows(), MaxBytes: t.bytes(), Timeout: t.timeout(),
	})
	if err != nil {
		return tool.Result{}, t.redactError(err)
	}
	return document(rows), nil
}

// redactError leaves the database's words out where they may hold a value that
// the caller is not to see.
func (t *declared) redactError(err error) error {
	if errcode.Of(err) != errcode.ToolExecutionFailed || !t.hasSecrets() {
		return err
	}
	return errcode.New(errcode.ToolExecutionFailed, "run a statement: the database refused it; its words may hold a value that is secure or of a claim and are not passed on")
}

// hasSecrets says whether there are values that are not the caller's own words:
// secure ones, and those of claims.
func (t *declared) hasSecrets() bool {
	return t.config.Parameters.Secure() || len(t.config.Parameters.Services()) > 0
}

// bindArgs gives the values for the placeholders of a statement. More parameters
// than placeholders are fine: PostgreSQL, which counts, gets no more than there
// can be.
func bindArgs(source, text string, v parameter.Values) []any {
	switch source {
	case config.SourceSQLite, config.SourceMySQL:
		return v.BindText()
	}
	args := v.Bind()
	return args[:min(len(args), maxPlaceholder(text))]
}

var placeholder = regexp.MustCompile(`\$[0-9]{1,5}`)

// maxPlaceholder gives the highest number that a placeholder of PostgreSQL can have
// in a text.
func maxPlaceholder(text string) (most int) {
	for _, found := range placeholder.FindAllString(text, -1) {
		n, _ := strconv.Atoi(found[1:]) // digits
		most = max(most, n)
	}
	return most
}
