package toolbox

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/database"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// CheckConnection returns why the source of c cannot be reached, or nil. It runs SELECT 1 in
// a database, and sends HEAD to the baseUrl of a service, from which any response counts.
// It creates no file. Its error contains no header and no query.
func CheckConnection(ctx context.Context, c Config) (err error) {
	if c.Source.Type == toolboxfile.SourceSQLite && c.Source.Database != ":memory:" {
		c.Source.ReadOnly = true // otherwise a missing file is created
	}
	one, err := newPool(c, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, one.close()) }()
	if one.client != nil {
		return headService(ctx, one.client, c.Source.BaseURL)
	}
	_, err = one.query(ctx, database.Query{SQL: "SELECT 1", ReadOnly: !c.Source.NoReadOnlyTransactions})
	if errcode.CodeOf(err) == errcode.ToolUnavailable && one.missing == "" {
		return networkCause(err)
	}
	return err
}

// headService sends HEAD to an address.
func headService(ctx context.Context, client *http.Client, address string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodHead, address, nil)
	if err != nil {
		return errcode.New(errcode.InvalidConfig, "baseUrl is not an address")
	}
	answer, err := client.Do(r)
	switch {
	case errors.Is(err, errOtherHost) || errors.Is(err, errRedirectLoop): // it answers; a call may have another path
		return nil
	case err != nil:
		return networkCause(err)
	}
	return answer.Body.Close()
}
