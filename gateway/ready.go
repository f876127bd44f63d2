package gateway

import (
	"log/slog"
	"net/http"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/org"
)

// ready answers /readyz: 503 with the reasons why the process should not be sent work.
// The query parameter exclude names reasons that do not count.
func (a *api) ready(r *http.Request) (any, error) {
	reasons := append(a.storageReasons(r), a.unready()...)
	excluded := r.URL.Query()["exclude"]
	reasons = slices.DeleteFunc(reasons, func(reason wire.UnreadyReason) bool { return slices.Contains(excluded, reason.Code) })
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if len(reasons) == 0 {
		return wire.Health{Status: "ready", Version: a.versionFor(r)}, nil
	}
	scope := auth.ScopeOf(auth.SenderOf(r))
	if !monitors.Has(scope) {
		for i := range reasons {
			reasons[i].Names = nil // names of modules and models are for the operator
		}
	}
	return statusAnswer{code: http.StatusServiceUnavailable, body: wire.ErrorBody{Error: wire.ErrorDetail{
		Code: wire.NotReady, Message: reasons[0].Message, Details: map[string]any{"reasons": reasons},
	}}}, nil
}

// storageReasons returns why the store rules out new work: it cannot be read, or its disk
// has too little space.
func (a *api) storageReasons(r *http.Request) (list []wire.UnreadyReason) {
	_, err := a.rt.JournalStore().ReadRecord(r.Context(), string(org.KindMeta), "epoch")
	if err != nil && r.Context().Err() == nil {
		a.failures.LogRequest(slog.LevelError, "the store cannot be read", auth.SenderOf(r), r, err)
		list = append(list, wire.UnreadyReason{Code: wire.UnreadyStore, Message: "the store cannot be read"})
	}
	if low := a.rt.CheckStorage(); low != nil {
		list = append(list, wire.UnreadyReason{Code: wire.UnreadyStorageLow, Message: errcode.Message(low)})
	}
	return list
}
