package toolboxfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/yamldoc"
)

// authType is a type of auth service and the function that reads its fields.
type authType struct {
	name string
	read func(item, *AuthService)
}

// authTypes returns all types of auth services. It is the only list of them.
func authTypes() []authType {
	return []authType{{AuthGeneric, readGeneric}, {AuthGoogle, readGoogle}}
}

// readAuthService reads a document of kind authService.
func readAuthService(it item) {
	it.DeclareItem()
	known := authTypes()
	i, ok := it.typeIndex("auth service", len(known), func(i int) (string, bool) { return known[i].name, true })
	if !ok {
		return
	}
	s := AuthService{Name: it.Name, Type: known[i].name, Pos: it.Pos}
	known[i].read(it, &s)
	s.Fingerprint = it.fingerprint()
	it.checkSingleton(s)
	it.r.to.AuthServices = append(it.r.to.AuthServices, s)
}

// readGeneric reads a service for any issuer of OpenID Connect.
func readGeneric(it item, s *AuthService) {
	introspection := Introspection{}
	var audience string
	it.ReadFields(yamldoc.Fields{
		"type":                   yamldoc.SkipField,
		"audience":               yamldoc.NonEmptyField(&audience),
		"authorizationServer":    yamldoc.ServerURL(&s.Issuer),
		"mcpEnabled":             yamldoc.BoolField(&s.MCPEnabled),
		"scopesRequired":         yamldoc.NameList(&s.Scopes, "scopes"),
		"introspectionEndpoint":  yamldoc.ServerURL(&introspection.Endpoint),
		"introspectionMethod":    introspectionMethod(&introspection.Method),
		"introspectionParamName": yamldoc.NonEmptyField(&introspection.Parameter),
		"forceIntrospection":     yamldoc.BoolField(&introspection.Always),
	})
	it.RequireFields("audience", "authorizationServer")
	s.Audience = []string{audience}
	if s.MCPEnabled {
		s.Introspection = &introspection
	}
	it.fieldsNeedMCP(s, "scopesRequired", "introspectionEndpoint", "introspectionMethod", "introspectionParamName", "forceIntrospection")
}

// readGoogle reads a service for tokens of Google.
func readGoogle(it item, s *AuthService) {
	var client, audience string
	it.ReadFields(yamldoc.Fields{
		"type":           yamldoc.SkipField,
		"clientId":       yamldoc.NonEmptyField(&client),
		"audience":       yamldoc.NonEmptyField(&audience),
		"mcpEnabled":     yamldoc.BoolField(&s.MCPEnabled),
		"scopesRequired": yamldoc.NameList(&s.Scopes, "scopes"),
	})
	s.Issuer = googleIssuer
	_, hasClient := it.FindField("clientId")
	_, hasAudience := it.FindField("audience")
	// The audience of a token that a caller sends with a call is the client. The
	// audience of an MCP access token is the server.
	switch {
	case !hasClient && !hasAudience:
		it.MissingField("clientId").AddError("is missing, and so is audience", "one of them is required; without it every Google token would be accepted")
	case hasClient && (!s.MCPEnabled || !hasAudience):
		s.Audience = []string{client}
	default:
		s.Audience = []string{audience}
	}
	it.fieldsNeedMCP(s, "scopesRequired")
}

// fieldsNeedMCP rejects fields that have no effect without mcpEnabled.
func (it item) fieldsNeedMCP(s *AuthService, fields ...string) {
	if s.MCPEnabled {
		return
	}
	for _, name := range fields {
		if at, ok := it.FindField(name); ok {
			at.AddError("requires mcpEnabled: true", "")
		}
	}
}

// checkSingleton rejects a second service for MCP callers.
func (it item) checkSingleton(s AuthService) {
	all := it.r.to.AuthServices
	i := slices.IndexFunc(all, func(other AuthService) bool { return other.MCPEnabled })
	if s.MCPEnabled && i >= 0 {
		at, _ := it.FindField("mcpEnabled")
		at.AddError(fmt.Sprintf("is already true for the service at %s", all[i].Pos), "only one auth service can authenticate MCP callers")
	}
}

// introspectionMethod reads GET or POST, in any case.
func introspectionMethod(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		switch text = strings.ToUpper(text); text {
		case "GET", "POST":
			*to = text
		default:
			v.AddTypeError("GET or POST", "")
		}
	}
}
