package config

import (
	"fmt"
	"slices"
	"strings"
)

// authType is a type of auth service and the function that reads its fields.
type authType struct {
	name string
	read func(docItem, *AuthService)
}

// authTypes returns all types of auth services. It is the only list of them.
func authTypes() []authType {
	return []authType{{AuthGeneric, readGeneric}, {AuthGoogle, readGoogle}}
}

// readAuthService reads a document of kind authService.
func readAuthService(it docItem) {
	it.declare()
	known := authTypes()
	i, ok := it.typeIndex("auth service", len(known), func(i int) string { return known[i].name })
	if !ok {
		return
	}
	s := AuthService{Name: it.name, Type: known[i].name, Pos: it.pos}
	known[i].read(it, &s)
	s.Fingerprint = it.fingerprint()
	it.checkSingleton(s)
	it.doc.config.AuthServices = append(it.doc.config.AuthServices, s)
}

// readGeneric reads a service for any issuer of OpenID Connect.
func readGeneric(it docItem, s *AuthService) {
	introspection := Introspection{}
	var audience string
	it.fields(
		typeField(),
		field{"audience", nonEmptyField(&audience)},
		field{"authorizationServer", serverURL(&s.Issuer)},
		field{"mcpEnabled", boolField(&s.MCPEnabled)},
		field{"scopesRequired", nameList(&s.Scopes, "scopes")},
		field{"introspectionEndpoint", serverURL(&introspection.Endpoint)},
		field{"introspectionMethod", introspectionMethod(&introspection.Method)},
		field{"introspectionParamName", nonEmptyField(&introspection.Parameter)},
		field{"forceIntrospection", boolField(&introspection.Always)},
	)
	it.requireFields("audience", "authorizationServer")
	s.Audience = []string{audience}
	if s.MCPEnabled {
		s.Introspection = &introspection
	}
	it.fieldsNeedMCP(s, "scopesRequired", "introspectionEndpoint", "introspectionMethod", "introspectionParamName", "forceIntrospection")
}

// readGoogle reads a service for tokens of Google.
func readGoogle(it docItem, s *AuthService) {
	var client, audience string
	it.fields(
		typeField(),
		field{"clientId", nonEmptyField(&client)},
		field{"audience", nonEmptyField(&audience)},
		field{"mcpEnabled", boolField(&s.MCPEnabled)},
		field{"scopesRequired", nameList(&s.Scopes, "scopes")},
	)
	s.Issuer = googleIssuer
	_, hasClient := it.child("clientId")
	_, hasAudience := it.child("audience")
	// The audience of a token that a caller sends with a call is the client. The
	// audience of an MCP access token is the server.
	switch {
	case !hasClient && !hasAudience:
		it.missing("clientId").fail("is missing, and so is audience", "one of them is required; without it every Google token would be accepted")
	case hasClient && (!s.MCPEnabled || !hasAudience):
		s.Audience = []string{client}
	default:
		s.Audience = []string{audience}
	}
	it.fieldsNeedMCP(s, "scopesRequired")
}

// fieldsNeedMCP rejects fields that have no effect without mcpEnabled.
func (it docItem) fieldsNeedMCP(s *AuthService, fields ...string) {
	if s.MCPEnabled {
		return
	}
	for _, name := range fields {
		if at, ok := it.child(name); ok {
			at.fail("requires mcpEnabled: true", "")
		}
	}
}

// checkSingleton rejects a second service for MCP callers.
func (it docItem) checkSingleton(s AuthService) {
	all := it.doc.config.AuthServices
	i := slices.IndexFunc(all, func(other AuthService) bool { return other.MCPEnabled })
	if s.MCPEnabled && i >= 0 {
		at, _ := it.child("mcpEnabled")
		at.fail(fmt.Sprintf("is already true for the service at %s", all[i].Pos), "only one auth service can authenticate MCP callers")
	}
}

// introspectionMethod reads GET or POST, in any case.
func introspectionMethod(to *string) func(value) {
	return func(v value) {
		text, ok := v.nonEmpty()
		if !ok {
			return
		}
		switch text = strings.ToUpper(text); text {
		case "GET", "POST":
			*to = text
		default:
			v.failType("GET or POST", "")
		}
	}
}
