package gateway

import (
	"net/http"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/gateway/wire"
)

// callTool passes one call through the gate, as a call by an external caller in the role
// that the operator names. A denial and a failure of the tool are outcomes, which are on
// the record. An error means that nothing was called.
func (a *api) callTool(r *http.Request) (any, error) {
	q, err := decode[wire.CallRequest](r)
	if err != nil {
		return nil, err
	}
	if q.Role == "" {
		return nil, errcode.New(errcode.InvalidArguments, "the body has no field \"role\": name the role in which to call").With("field", "role")
	}
	sender := auth.SenderOf(r)
	caller, _, err := mcpserver.ResolveCaller(a.org(), sender, q.Role)
	if err != nil {
		return nil, err
	}
	release, err := a.limiter.Acquire(sender)
	if err != nil {
		return nil, err
	}
	defer release()
	admitted, err := a.rt.InvokeTool(r.Context(), caller, r.PathValue("name"), q.Args)
	if err != nil {
		return nil, err
	}
	return wire.CallResult{
		Call: admitted.Request.Call.ID, Denied: !admitted.Allowed(), Code: admitted.Code(),
		IsError: admitted.Result.IsError, Result: admitted.Result.JSON(),
	}, nil
}
