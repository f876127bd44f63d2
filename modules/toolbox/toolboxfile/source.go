package toolboxfile

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// sourceType is a type of source and its fields.
type sourceType struct {
	name    string
	needs   []string // required fields
	fields  func(item, *Source) yamldoc.Fields
	aliasOf string // the type whose protocol the database speaks, which Source.Type is; "" is name
}

// sourceTypes returns all types of sources. It is the only list of them.
func sourceTypes() []sourceType {
	return []sourceType{
		{SourceSQLite, []string{"database"}, sqliteFields, ""},
		{SourcePostgres, []string{"host", "port", "user", "database"}, postgresFields, ""},
		{SourceCloudSQLPostgres, []string{"project", "region", "instance", "database"}, cloudFields, ""},
		{SourceMySQL, []string{"host", "port"}, mysqlFields, ""},
		{SourceHTTP, []string{"baseUrl"}, httpFields, ""},
		{"cockroachdb", []string{"host", "port", "user", "database"}, cockroachFields, SourcePostgres},
		{"yugabytedb", []string{"host", "port", "user", "database"}, postgresFields, SourcePostgres},
		{"oceanbase", []string{"host", "port", "user", "database"}, mysqlAliasFields, SourceMySQL},
		{"singlestore", []string{"host", "port", "user", "database"}, singleStoreFields, SourceMySQL},
		{"tidb", []string{"host", "port", "user", "database"}, tidbFields, SourceMySQL},
	}
}

// maxDatabaseConns is the largest value of maxConnections.
const maxDatabaseConns = 10_000

// readSource reads a document of kind source.
func readSource(it item) {
	before := it.ErrorCount()
	it.DeclareItem()
	known := sourceTypes()
	i, ok := it.typeIndex("source", len(known), func(i int) (string, bool) { return known[i].name, known[i].aliasOf == "" })
	if !ok {
		return
	}
	s := Source{Name: it.Name, Type: cmp.Or(known[i].aliasOf, known[i].name), Pos: it.Pos}
	it.ReadFields(yamldoc.MergeFields(known[i].fields(it, &s), LabelFields(it.Item, &s.Labels), yamldoc.Fields{
		"type":             yamldoc.SkipField,
		"profile":          yamldoc.OneOfField(&s.Profile, ProfileStrict, ProfileCompat),
		"maxResponseBytes": yamldoc.IntField(&s.MaxResponseBytes, maxResponseBytes),
		"timeout":          yamldoc.DurationField(&s.Timeout, maxQueryTime),
	}))
	it.RequireFields(known[i].needs...)
	s.Fingerprint, s.Invalid = it.fingerprint(s.Database), it.ErrorCount() > before
	it.r.to.Sources = append(it.r.to.Sources, s)
}

// sqliteFields returns the fields of a SQLite database.
func sqliteFields(_ item, s *Source) yamldoc.Fields {
	return yamldoc.MergeFields(databaseFields(s), yamldoc.Fields{"database": databaseField(&s.Database)})
}

// postgresFields returns the fields of PostgreSQL.
func postgresFields(_ item, s *Source) yamldoc.Fields {
	return yamldoc.MergeFields(serverFields(s), yamldoc.Fields{
		"queryExecMode": yamldoc.OneOfField(&s.QueryExecMode, "cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"),
	})
}

// mysqlFields returns the fields of MySQL. queryTimeout is Toolbox's name of timeout.
func mysqlFields(it item, s *Source) yamldoc.Fields {
	return yamldoc.MergeFields(serverFields(s), yamldoc.Fields{
		"queryTimeout": it.insteadOf("timeout", yamldoc.DurationField(&s.Timeout, maxQueryTime)),
	})
}

// insteadOf returns a field that is another name of the field name: a document has one of them.
func (it item) insteadOf(name string, read func(yamldoc.Value)) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if _, ok := it.FindField(name); ok {
			v.AddError("cannot be combined with "+name, "leave one out")
			return
		}
		read(v)
	}
}

// cloudFields returns the fields of a Cloud SQL instance.
func cloudFields(_ item, s *Source) yamldoc.Fields {
	s.IPType = "public"
	return yamldoc.MergeFields(databaseFields(s), yamldoc.Fields{
		"project":  yamldoc.FileAllowed(yamldoc.ScalarField(&s.Project)),
		"region":   yamldoc.FileAllowed(yamldoc.ScalarField(&s.Region)),
		"instance": yamldoc.FileAllowed(yamldoc.ScalarField(&s.Instance)),
		"ipType":   ipTypeField(&s.IPType),
		"database": yamldoc.FileAllowed(yamldoc.ScalarField(&s.Database)),
		"user":     yamldoc.FileAllowed(yamldoc.ScalarField(&s.User)),
		"password": yamldoc.PasswordField(&s.Password),
	})
}

// serverFields returns the fields of a database on a server.
func serverFields(s *Source) yamldoc.Fields {
	return yamldoc.MergeFields(databaseFields(s), yamldoc.Fields{
		"host":        yamldoc.FileAllowed(yamldoc.ScalarField(&s.Host)),
		"port":        yamldoc.FileAllowed(yamldoc.PortField(&s.Port)),
		"user":        yamldoc.FileAllowed(yamldoc.ScalarField(&s.User)),
		"password":    yamldoc.PasswordField(&s.Password),
		"database":    yamldoc.FileAllowed(yamldoc.ScalarField(&s.Database)),
		"queryParams": yamldoc.FileAllowed(yamldoc.EmptyAsAbsent(connectionParams(&s.Params))),
	})
}

// databaseFields returns the fields of all databases.
func databaseFields(s *Source) yamldoc.Fields {
	return yamldoc.Fields{
		"readOnly":       yamldoc.BoolField(&s.ReadOnly),
		"maxConnections": yamldoc.IntField(&s.MaxConns, maxDatabaseConns),
		"maxRows":        yamldoc.CountField(&s.MaxRows),
	}
}

// httpFields returns the fields of an HTTP service.
func httpFields(it item, s *Source) yamldoc.Fields {
	return yamldoc.Fields{
		"baseUrl":                yamldoc.FileAllowed(yamldoc.ServerURL(&s.BaseURL)),
		"headers":                yamldoc.EmptyAsAbsent(yamldoc.SecretMap(&s.Headers, yamldoc.CheckHeaderName)),
		"queryParams":            yamldoc.EmptyAsAbsent(yamldoc.SecretMap(&s.QueryParams, checkQueryName)),
		"readOnly":               yamldoc.BoolField(&s.ReadOnly),
		"returnFullError":        yamldoc.OptionalBool(&s.FullError),
		"allowPrivateNetworks":   it.privateNetworks(s),
		"allowedIpRanges":        it.allowedRanges(s),
		"customBlockedIpRanges":  yamldoc.EmptyAsAbsent(yamldoc.AddressOrRangeList(&s.BlockedRanges)),
		"disableSslVerification": rejectSkippedVerification,
	}
}

// rejectSkippedVerification rejects disableSslVerification: true.
func rejectSkippedVerification(v yamldoc.Value) {
	var off bool
	if yamldoc.BoolField(&off)(v); off {
		v.AddError("is not supported: requests could be read and changed in transit", "install the CA certificate of the server, or name its file in SSL_CERT_FILE")
	}
}

// checkQueryName checks the name of a query parameter.
func checkQueryName(name string) (string, string) {
	if name == "" {
		return "", "is not a valid name of a query parameter"
	}
	return name, ""
}

// typeIndex reads the type of a document and returns its index among n types with
// the given names. Errors list those that are listed. In the v1 form the type may be in the
// field kind.
func (it item) typeIndex(kind string, n int, name func(int) (name string, listed bool)) (int, bool) {
	all, listed := make([]string, n), []string(nil)
	for i := range all {
		var list bool
		if all[i], list = name(i); list {
			listed = append(listed, all[i])
		}
	}
	at, ok := it.FindField("type")
	if older, found := it.FindField("kind"); it.IsEntry && found {
		if ok {
			at.AddError("cannot be combined with kind", "in Toolbox's v1 form both are the type; leave one out")
			return 0, false
		}
		at, ok = older, true
	}
	if !ok {
		it.MissingField("type").AddError("is missing", yamldoc.ListHint("there are ", listed))
		return 0, false
	}
	word, ok := at.ReadNonEmpty()
	if !ok {
		return 0, false
	}
	i := slices.Index(all, word)
	if i < 0 {
		at.AddError(kind+" type "+yamldoc.QuoteText(word)+" is unknown", cmp.Or(toolboxTypeHint(word), textutil.SuggestName(word, all), yamldoc.ListHint("there are ", listed)))
	}
	return i, i >= 0
}

// toolboxFieldHint returns the hint for a field that Toolbox has and this package
// does not support, or "".
func toolboxFieldHint(name string) string {
	switch name {
	case "sendGoogleAccessToken":
		return "credentials of this machine are never sent to a service: leave it out, and set a token of the source in headers"
	case "useClientOAuth":
		return "tokens of callers are never passed to a source: leave it out, set an account of the source, and list the auth services that a tool requires in authRequired"
	}
	return ""
}

// ipTypeField reads which address of a Cloud SQL instance to dial, in any case.
func ipTypeField(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		switch text = strings.ToLower(text); text {
		case "public", "private", "psc":
			*to = text
		default:
			v.AddTypeError("public, private or psc", "")
		}
	}
}

// databaseField reads the path of a SQLite file, relative to the document, or
// :memory:. It rejects a URI: read as a path it would create another, empty file.
func databaseField(to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		var name string
		yamldoc.ScalarField(&name)(v)
		switch {
		case strings.HasPrefix(name, "file:"):
			v.AddError("is a SQLite URI, which is not supported", "write the path of the file, or :memory:; readOnly: true opens it for reading only")
		case name != "" && name != ":memory:":
			name = v.RelativePath(name)
		}
		*to = name
	}
}

// The largest values of the field maxResponseBytes.
const (
	maxResponseBytes = 256 << 20 // of a source: SQLite may use longer texts and blobs than a result has
	maxResultBytes   = 4 << 20   // of a tool: the gate takes no larger result (gate.Config.MaxResult)
)

// maxQueryTime is the largest timeout of a statement or request.
const maxQueryTime = time.Hour
