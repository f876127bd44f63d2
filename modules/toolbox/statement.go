package toolbox

import (
	"context"
	"strconv"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/modules/toolbox/database"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/tool"
)

// statement is the action of a tool whose statement is configured.
type statement struct {
	tool     *declaredTool
	template *parameter.Template
}

func newStatement(t *declaredTool) (action, error) {
	template, err := t.config.Parameters.StatementTemplate(t.config.Statement)
	if err != nil {
		return nil, errcode.New(errcode.InvalidConfig, "statement: %v", err)
	}
	return &statement{t, template}, nil
}

func (s *statement) run(ctx context.Context, p callerPool, v parameter.Values) (tool.Result, error) {
	text, err := s.template.RenderText(v)
	if err != nil {
		return tool.Result{}, err
	}
	args := bindArgs(s.tool.module.config.Source.Type, text, v)
	if err := s.tool.checkRectangular(args); err != nil {
		return tool.Result{}, err
	}
	return s.tool.query(ctx, p, database.Query{SQL: text, Args: args, Untrusted: s.tool.config.Parameters.AllowsFreeText()})
}

// executeSQL is the action of a tool whose statement is an argument of the call.
type executeSQL struct{ tool *declaredTool }

func newExecuteSQL(t *declaredTool) (action, error) { return &executeSQL{t}, nil }

func (e *executeSQL) run(ctx context.Context, p callerPool, v parameter.Values) (tool.Result, error) {
	value, _ := v.LookupValue(toolboxfile.ParameterSQL)
	text, ok := value.(string)
	if !ok {
		return tool.Result{}, errcode.New(errcode.InvalidArguments, "parameter %q is required", toolboxfile.ParameterSQL)
	}
	return e.tool.query(ctx, p, database.Query{SQL: text, Untrusted: true})
}

// query runs q with the limits of the tool, and returns its rows. q is read-only if the tool is.
func (t *declaredTool) query(ctx context.Context, p callerPool, q database.Query) (tool.Result, error) {
	q.ReadOnly = t.definition.Effect == tool.ReadOnly
	q.MaxRows, q.MaxBytes, q.Timeout = t.maxRows(), t.maxBytes(), t.timeout()
	rows, err := p.query(ctx, q)
	if err != nil {
		return tool.Result{}, t.redactError(err)
	}
	return jsonResult(rows), nil
}

// redactError drops the database's error text if it could contain a secure or claim
// value.
func (t *declaredTool) redactError(err error) error {
	if errcode.CodeOf(err) != errcode.ToolExecutionFailed || !t.hasSecrets() {
		return err
	}
	return errcode.New(errcode.ToolExecutionFailed, "run a statement: the database rejected it; its error is withheld because it may contain a secure or claim value")
}

// hasSecrets reports whether there are values that the caller must not see: secure values, and
// claims.
func (t *declaredTool) hasSecrets() bool {
	return t.config.Parameters.HasSecure() || len(t.config.Parameters.ClaimServices()) > 0
}

// bindArgs returns the values for the placeholders of a statement, in the form that the type of the
// source needs. A tool may have more parameters than its statement has placeholders. PostgreSQL
// rejects extra values, so bindArgs leaves them out.
func bindArgs(sourceType, text string, v parameter.Values) []any {
	switch sourceType {
	case toolboxfile.SourceSQLite, toolboxfile.SourceMySQL:
		return v.BindTexts()
	}
	args := v.BindValues()
	return args[:min(len(args), highestPlaceholder(text))]
}

var placeholder = textutil.LazyPattern(`\$[0-9]{1,5}`)

// highestPlaceholder returns the highest number that a placeholder of PostgreSQL can have
// in a statement.
func highestPlaceholder(text string) (most int) {
	for _, found := range placeholder().FindAllString(text, -1) {
		n, _ := strconv.Atoi(found[1:]) // digits
		most = max(most, n)
	}
	return most
}
