// Package toolboxfile reads the documents of MCP Toolbox: sources, tools, toolsets,
// prompts, resources and auth services.
//
//	var declared toolboxfile.Declarations
//	reader := toolboxfile.NewReader(docs, set, &declared)
//	set.ReadDocument(root) // for each document; set may have other kinds too
//	set.CheckReferences()
//	reader.CheckTools()
//
// The three spellings of Toolbox may be mixed in one file. The current one has documents
// with kind, name and type. The older v2 form has plural kinds, and the v1 form has
// nested maps. [MigrateFile] rewrites the two older forms in the current form.
// [Reader.ReuseTool] takes tools from an earlier reading. So a change of one tool in
// thousands is fast.
//
// The package returns declarations only: package toolbox runs the tools. It opens no
// database and verifies no token.
//
// A new type of source or tool needs an entry in sourceTypes or toolTypes here, and the
// other steps in docs/architecture.md.
package toolboxfile

import (
	"net/netip"
	"time"

	"github.com/rolecall/rolecall/internal/hours"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
	"github.com/rolecall/rolecall/tool"
)

// Declarations are the documents of Toolbox, in the order of files and documents.
type Declarations struct {
	Sources      []Source       `json:",omitempty"`
	Tools        []DeclaredTool `json:",omitempty"`
	Toolsets     []Toolset      `json:",omitempty"`
	Prompts      []Prompt       `json:",omitempty"`
	AuthServices []AuthService  `json:",omitempty"`
	ToolServices []ToolService  `json:",omitempty"`
	Labels       []ToolLabels   `json:",omitempty"`
	Resources    []Resource     `json:",omitempty"` // and templates of resources
}

// Source is a document of kind source: a database or HTTP service that declared
// tools use. Which fields are set depends on the type.
//
//	kind: source
//	name: flights
//	type: postgres
//	host: 127.0.0.1
//	port: 5432
//	user: app
//	password: ${PGPASSWORD}
//	database: flights
type Source struct {
	Name string
	Type string // one of SourceSQLite and the others

	// For databases. Database is the name of a database on a server, or the path
	// of a file, with the document's directory prepended if it is relative.
	Database      string
	Host          string
	Port          int // 0 is not set
	User          string
	Password      yamldoc.Secret
	Params        map[string]string // queryParams: parameters of the connection
	QueryExecMode string            // of postgres; "" is the driver's default

	// For cloud-sql-postgres, in addition to Database, User and Password.
	Project, Region, Instance string
	IPType                    string // public, private or psc

	// For http.
	BaseURL     string
	Headers     map[string]yamldoc.Secret
	QueryParams map[string]yamldoc.Secret // added to the URL of every request

	// For http: the addresses that it reaches, of those that the operator allows. With
	// PrivateNetworks false it reaches public addresses only; nil is not set. It reaches no address
	// in BlockedRanges. It reaches those in AllowedRanges in spite of both.
	PrivateNetworks              *bool          `json:",omitempty"`
	AllowedRanges, BlockedRanges []netip.Prefix `json:",omitempty"`

	// For http: what the tool's error has of a response that is an error. True is its status and a
	// long beginning of its body, false is the status only. Nil is the status and a short beginning.
	FullError *bool `json:",omitempty"`

	ReadOnly               bool          // statements and requests that write are rejected
	NoReadOnlyTransactions bool          `json:",omitempty"` // the database cannot begin a transaction that only reads
	NoTableParts           bool          `json:",omitempty"` // lists of tables have columns only: the database lacks functions for the rest
	MaxConns               int           // largest number of connections; 0 is not set
	Timeout                time.Duration // of one statement or request; 0 is not set
	MaxRows                int           // of one result; 0 is not set
	MaxResponseBytes       int           // of one result; 0 is not set

	Labels  Labels `json:",omitzero"`  // of its tools that have none of their own
	Profile string `json:",omitempty"` // ProfileStrict or ProfileCompat; "" is ProfileStrict

	// Invalid means that errors in the document have been reported. Callers must
	// not use such a source, and should not report errors that follow from it.
	Invalid bool `json:"-"`

	// Fingerprint is a digest of everything but Pos. The password is part of it, so the digest must
	// not be shown.
	Fingerprint string `json:"-"`
	Pos         yamldoc.Pos
}

// The types of sources.
const (
	SourceSQLite           = "sqlite"
	SourcePostgres         = "postgres"
	SourceCloudSQLPostgres = "cloud-sql-postgres"
	SourceMySQL            = "mysql"
	SourceHTTP             = "http"
)

// The profiles of a source. An entry of allowedValues of its tools could be a literal or an
// expression. ProfileStrict rejects such an entry. ProfileCompat reads it as an expression for
// whole values.
const (
	ProfileStrict = "strict"
	ProfileCompat = "compat"
)

// DeclaredTool is a document of kind tool. Most tools query a source or write to it. Tools of type
// mcp-tool, tool-service and graph-update have no source.
//
//	kind: tool
//	name: search_flights
//	type: postgres-sql
//	source: flights
//	description: Find flights by number.
//	statement: SELECT * FROM flights WHERE number = $1
//	parameters:
//	  - {name: number, type: integer, description: The flight's number.}
type DeclaredTool struct {
	Name        string
	Type        string // one of ToolSQLiteSQL and the others
	Source      string // name of the source, whose type fits the tool's; "" if the type of tool has none
	Description string

	Statement  string         // of -sql types; a template if there are template parameters
	Parameters *parameter.Set `json:"-"` // not nil if there are no errors; fixed for -execute-sql and -list-tables types

	HTTP *HTTPRequest // of type http and the types of TrustGraph, else nil
	MCP  *ToolID      `json:",omitempty"` // of type mcp-tool: the tool that it calls; nil if there are errors

	Service *ServiceCall `json:",omitempty"` // of type tool-service: what it calls, else nil

	AuthRequired   []string // auth services; the caller needs a valid token of one of them
	ScopesRequired []string // the caller's token needs all of them

	Annotations Annotations
	Effect      string     // readOnly, idempotent or mutating; "" means it follows from annotations and type
	Flags       tool.Flags `json:",omitzero"` // the zero Flags are not set and count as all

	Groups    []string // tool groups it is in, in addition to toolsets; nil means the group default, empty means none
	NextState string   // workflow state after a call; "" does not change it
	InStates  []string // workflow states in which it can be called; nil means all, empty means none

	MaxRows          int // 0 is the source's limit
	MaxResponseBytes int
	Timeout          time.Duration

	Fingerprint string `json:"-"` // the same for tools that differ in nothing but Pos and the document of their source
	Pos         yamldoc.Pos

	own       Labels // as the document has them
	cacheable bool   // ReuseTool may reuse it: it is a valid document of its own
}

// The types of declared tools.
const (
	ToolSQLiteSQL          = "sqlite-sql"
	ToolSQLiteExecute      = "sqlite-execute-sql"
	ToolSQLiteListTables   = "sqlite-list-tables"
	ToolPostgresSQL        = "postgres-sql"
	ToolPostgresExecute    = "postgres-execute-sql"
	ToolPostgresListTables = "postgres-list-tables"
	ToolMySQLSQL           = "mysql-sql"
	ToolMySQLExecute       = "mysql-execute-sql"
	ToolMySQLListTables    = "mysql-list-tables"
	ToolHTTP               = "http"

	ToolMCP       = "mcp-tool"     // calls a tool of an MCP server
	ToolOfService = "tool-service" // calls a tool service behind a broker

	// Tools of TrustGraph. graph-update cannot be called: TrustGraph has no HTTP API for it.
	ToolKnowledgeQuery  = "knowledge-query"
	ToolTextCompletion  = "text-completion"
	ToolPrompt          = "prompt"
	ToolStructuredQuery = "structured-query"
	ToolGraphUpdate     = "graph-update"
)

// The parameters of tool types with fixed parameters.
const (
	ParameterSQL          = "sql"           // of -execute-sql: a statement
	ParameterTableNames   = "table_names"   // of -list-tables: separated by commas; "" means all
	ParameterOutputFormat = "output_format" // of -list-tables: simple or detailed
)

// HTTPRequest is the request that a tool of type http, or of a type of TrustGraph, sends to its
// source.
type HTTPRequest struct {
	Method  string                    // in upper case
	Path    string                    // relative to the source's BaseURL; a template of PathParams
	Headers map[string]yamldoc.Secret // they override the source's
	Body    string                    // a template of BodyParams

	// ResultFields lists the fields of a JSON answer that can hold the result, the first one first.
	// Without any the whole body is the result.
	ResultFields []string `json:",omitempty"`
	OnlyReads    bool     `json:",omitempty"` // the request changes nothing, whatever its method

	// Names of the parameters, by the part of the request they are in.
	PathParams, QueryParams, HeaderParams, BodyParams []string
}

// Annotations are the hints of MCP about a tool. A nil hint is not set.
type Annotations struct {
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// Toolset is a document of kind toolset or group: a tool group of declared tools.
//
//	kind: toolset
//	name: reading
//	tools: [search_flights]
type Toolset struct {
	Name        string // "" is the group of all tools, which has only a description
	Description string
	Tools       []string // in order, each once; SERVER/TOOL is a tool of an MCP server or module
	Prompts     []string `json:",omitempty"` // in order, each once

	Resources         []string `json:",omitempty"` // in order, each once
	ResourceTemplates []string `json:",omitempty"`

	Children []GroupRef   `json:",omitempty"` // groups that the toolset holds too
	Fallback []GroupRef   `json:",omitempty"` // groups with tools to use instead
	Hours    *hours.Hours `json:",omitempty"` // when it has its tools; nil is always
	Pos      yamldoc.Pos
}

// Prompt is a document of kind prompt: messages with placeholders for arguments,
// which clients get by name. Only roles with a toolset that lists it can get it.
//
//	kind: prompt
//	name: trip
//	messages: [{content: "Plan a trip to {{.city}}."}]
//	arguments: [{name: city, description: Where to.}]
type Prompt struct {
	Name        string
	Description string
	Arguments   *parameter.Set `json:"-"` // not nil if there are no errors
	Messages    []PromptMessage

	Fingerprint string `json:"-"` // the same for prompts that differ in nothing but Pos
	Pos         yamldoc.Pos
}

// PromptMessage is one message of a prompt.
type PromptMessage struct {
	Role    string // user or assistant
	Content string // a template of the arguments
}

// AuthService is a document of kind authService: an issuer whose tokens
// authenticate callers.
//
//	kind: authService
//	name: company
//	type: generic
//	audience: rolecall
//	authorizationServer: https://id.example.com
type AuthService struct {
	Name     string
	Type     string   // google or generic
	Issuer   string   // URL that a token must have as its issuer
	Audience []string // a token must have one of them
	Scopes   []string // a token must have all of them

	MCPEnabled bool // MCP callers authenticate with its tokens

	Introspection *Introspection // of tokens that are not JWTs; nil means they are rejected

	Fingerprint string `json:"-"` // the same for services that differ in nothing but Pos
	Pos         yamldoc.Pos
}

// Introspection configures token introspection (RFC 7662).
type Introspection struct {
	Endpoint  string // "" means the one in the issuer's discovery document
	Method    string // GET or POST; "" is POST
	Parameter string // name of the parameter with the token; "" is token
	Always    bool   // JWTs are introspected too
}

// The types of auth services.
const (
	AuthGoogle  = "google"
	AuthGeneric = "generic"
)

// googleIssuer is the issuer of the tokens that a service of type google accepts.
const googleIssuer = "https://accounts.google.com"
