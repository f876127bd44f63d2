package cmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/textutil"
)

// approvalWatcher prints the calls that wait, and what changes.
type approvalWatcher struct {
	c    *common
	api  *client.Client
	rows table                      // of the list that is being received
	list map[string]client.Approval // by id, of the list that is being received
	seen map[string]client.Approval // by id, the calls that wait as far as was printed; nil before the first list
	redialer
}

// watchApprovals prints the calls that wait for the user, and then what changes, until ctx ends.
func watchApprovals(ctx context.Context, c *common, api *client.Client) error {
	w := &approvalWatcher{c: c, api: api, redialer: redialer{work: "calls that wait for approval", remedy: "watch them again"}}
	for {
		err := w.follow(ctx)
		if ctx.Err() != nil { // the user has ended it
			return nil
		}
		if !isConnectionError(err) {
			return err
		}
		if w.lostAt.IsZero() {
			fmt.Fprintln(c.err, connectionLost)
		}
		api, err := w.redial(ctx, c)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if api != nil {
			w.api = api
		}
	}
}

// follow prints what one stream has.
func (w *approvalWatcher) follow(ctx context.Context) error {
	w.rows, w.list = table{approvalHead}, map[string]client.Approval{}
	for change, err := range w.api.FollowApprovals(ctx) {
		if err == nil {
			err = w.handle(change)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// handle prints one item of a stream.
func (w *approvalWatcher) handle(change client.ApprovalChange) error {
	switch change.Type {
	case wire.ApprovalWaits:
		w.list[change.ID] = *change.Approval
		w.rows = append(w.rows, approvalRow(*change.Approval))
		if w.seen != nil || w.c.json {
			return w.printNew(change)
		}
		return nil
	case wire.ApprovalsListed:
		return w.finishList(change)
	case wire.ApprovalAsked, wire.ApprovalEscalates:
		w.seen[change.ID] = *change.Approval
	case "vote": // the request waits for more
	default:
		delete(w.seen, change.ID)
	}
	return w.print(change)
}

// printNew prints a call of a list, unless it was printed before the connection was lost.
func (w *approvalWatcher) printNew(change client.ApprovalChange) error {
	if _, known := w.seen[change.ID]; known {
		return nil
	}
	return w.print(change)
}

// finishList prints the first list as a table. Of a later one it prints which calls do not wait
// any more.
func (w *approvalWatcher) finishList(change client.ApprovalChange) error {
	w.lostAt = time.Time{}
	first, old := w.seen == nil, w.seen
	w.seen = w.list
	if first && !w.c.json {
		return w.rows.print(w.c.out)
	}
	for id, a := range old {
		if _, waits := w.list[id]; waits {
			continue
		}
		if err := w.print(client.ApprovalChange{Type: endedUnseen, At: change.At, ID: id, Tool: a.Tool, Role: a.Role}); err != nil {
			return err
		}
	}
	if w.c.json {
		return w.print(change)
	}
	return nil
}

// endedUnseen is the type of the end of a request while there was no connection.
const endedUnseen = "ended"

// print prints an item on one line.
func (w *approvalWatcher) print(change client.ApprovalChange) error {
	if w.c.json {
		return printJSONLine(w.c.out, change)
	}
	parts := []string{change.At.UTC().Format(time.RFC3339), change.Type, change.ID, change.Tool, "role " + change.Role}
	if a := change.Approval; a != nil {
		parts = append(parts, "for "+starterText(*a), "until "+a.Until.UTC().Format(time.RFC3339), textutil.TruncateWidth(a.Short, maxShortArgs))
	}
	for _, named := range [][2]string{{"to ", change.To}, {"by ", change.By}, {"as ", change.As}, {"reason: ", change.Reason}} {
		if named[1] != "" {
			parts = append(parts, named[0]+named[1])
		}
	}
	if change.Override {
		parts = append(parts, "in place of the approvers")
	}
	_, err := fmt.Fprintln(w.c.out, textutil.Sanitize(strings.Join(parts, "  ")))
	return err
}
