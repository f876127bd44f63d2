package toolboxfile

import "github.com/rolecall/rolecall/modules/toolbox/parameter"

// mysqlCatalog returns the types of tools that read the catalogs of MySQL and MariaDB.
func mysqlCatalog() []catalogTool {
	return append(mysqlActivity(), mysqlObjects()...)
}

// connectedSchema is a parameter of Toolbox that names the database of the connection. The server
// knows it, so its value is not used.
var connectedSchema = optionalParam("connected_schema", "Not used: the server knows the database of the connection.")

// mysqlActivity returns the types of tools about what the server does now.
func mysqlActivity() []catalogTool {
	return []catalogTool{{
		name:        "mysql-list-active-queries",
		description: "List the queries that run now, the longest-running first, with their process, text, transaction, times in seconds, states, user, locked and changed rows, and database.",
		parameters: []parameter.Spec{
			countParam("min_duration_secs", 0, "Only queries that run at least this many seconds."), limitParam(100),
		},
		statement: `SELECT p.id AS process_id, coalesce(t.trx_query, p.info) AS query, t.trx_started,
	timestampdiff(SECOND, t.trx_started, now()) AS trx_duration_seconds, timestampdiff(SECOND, t.trx_wait_started, now()) AS trx_wait_duration_seconds,
	p.time AS query_time, t.trx_state, p.state AS process_state, concat(p.user, '@', p.host) AS user,
	t.trx_rows_locked, t.trx_rows_modified, p.db
FROM information_schema.processlist p LEFT JOIN information_schema.innodb_trx t ON t.trx_mysql_thread_id = p.id
WHERE p.id <> connection_id() AND p.command NOT IN ('Sleep', 'Daemon', 'Binlog Dump') AND p.info IS NOT NULL AND p.time >= ?
ORDER BY p.time DESC, p.id LIMIT ?`,
	}, {
		name:        "mysql-list-all-locks",
		description: "List the locks on tables and rows that transactions hold or wait for, the oldest transaction first.",
		parameters: []parameter.Spec{
			filterParam("table_schema", "The database of the locked tables. Empty for all."), filterParam("table_name", "The locked table. Empty for all."), limitParam(10), connectedSchema,
		},
		// MySQL 8 has the locks in performance_schema, MariaDB in information_schema. Each reads the
		// comment that is meant for it.
		statement: `SELECT trx_id, process_id, trx_started, trx_duration_seconds, table_schema, table_name, index_name, lock_type, lock_mode, lock_status, lock_data, query
FROM (SELECT ? AS wanted_schema, ? AS wanted_table) AS wanted, (SELECT t.trx_id, t.trx_mysql_thread_id AS process_id, t.trx_started, timestampdiff(SECOND, t.trx_started, now()) AS trx_duration_seconds, t.trx_query AS query,
	/*!80000 l.object_schema AS table_schema, l.object_name AS table_name, l.index_name, l.lock_type, l.lock_mode, l.lock_status, l.lock_data
		FROM performance_schema.data_locks l JOIN information_schema.innodb_trx t ON t.trx_id = l.engine_transaction_id */
	/*M! replace(substring_index(l.lock_table, '.', 1), '` + "`" + `', '') AS table_schema, replace(substring_index(l.lock_table, '.', -1), '` + "`" + `', '') AS table_name, l.lock_index AS index_name,
			l.lock_type, l.lock_mode, CASE WHEN t.trx_requested_lock_id = l.lock_id THEN 'WAITING' ELSE 'GRANTED' END AS lock_status, l.lock_data
		FROM information_schema.innodb_locks l JOIN information_schema.innodb_trx t ON t.trx_id = l.lock_trx_id */
) AS locks
WHERE (wanted_schema = '' OR table_schema = wanted_schema) AND (wanted_table = '' OR table_name = wanted_table)
ORDER BY trx_started, trx_id, table_name LIMIT ?`,
	}, {
		name:        "mysql-show-query-stats",
		description: "List statistics of statements, those that took longest on average first: executions, times in milliseconds, rows, executions without an index or with a poor one. Needs performance_schema.",
		parameters:  []parameter.Spec{filterParam("table_schema", "The database in which the statements ran. Empty for all."), limitParam(10), connectedSchema},
		statement: `SELECT s.schema_name AS db, s.digest_text AS query, s.count_star AS execution_count,
	round(s.sum_timer_wait / 1000000000, 2) AS total_latency_ms, round(s.avg_timer_wait / 1000000000, 2) AS average_latency_ms,
	round(s.max_timer_wait / 1000000000, 2) AS max_latency_ms, s.sum_rows_sent AS total_rows_sent, s.sum_rows_examined AS total_rows_examined,
	s.sum_no_index_used AS full_table_scan_count, s.sum_no_good_index_used AS inefficient_index_used_count, s.last_seen AS last_executed
FROM (SELECT ? AS wanted_schema) AS wanted, performance_schema.events_statements_summary_by_digest s
WHERE s.schema_name NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys') AND (wanted_schema = '' OR s.schema_name = wanted_schema)
ORDER BY s.avg_timer_wait DESC, s.digest_text LIMIT ?`,
	}}
}

// mysqlObjects returns the types of tools about what a server contains.
func mysqlObjects() []catalogTool {
	schema := filterParam("table_schema", "The database. Empty for all that the account sees.")
	table := filterParam("table_name", "The table. Empty for all that the account sees.")
	return []catalogTool{{
		name:        "mysql-get-query-plan",
		description: "Show how the server would run one statement, as its EXPLAIN in JSON, without running it.",
		template:    []parameter.Spec{requiredParam("sql_statement", "One statement, without EXPLAIN.")},
		statement:   `EXPLAIN FORMAT=JSON {{.sql_statement}}`,
	}, {
		name:        "mysql-list-table-stats",
		description: "List statistics of tables: size in MB, rows, rows read and changed, and times and numbers of reads and writes. Without performance_schema these are null.",
		parameters: []parameter.Spec{
			schema, table,
			choiceParam("sort_by", "The order: row_count, rows_fetched, rows_inserted, rows_updated, rows_deleted, total_latency_secs, or empty for the size.", "row_count", "rows_fetched", "rows_inserted", "rows_updated", "rows_deleted", "total_latency_secs"),
			limitParam(10), connectedSchema,
		},
		statement: `SELECT table_schema, table_name, size_MB, row_count, total_latency_secs, rows_fetched, rows_inserted, rows_updated, rows_deleted,
	io_reads, io_read_latency, io_writes, io_write_latency, io_misc_requests, io_misc_latency
FROM (SELECT ? AS wanted_schema, ? AS wanted_table, ? AS sort_by) AS wanted, (
	SELECT t.table_schema, t.table_name, round((t.data_length + t.index_length) / 1048576, 2) AS size_MB, t.table_rows AS row_count,
		round(w.sum_timer_wait / 1000000000000, 2) AS total_latency_secs, w.count_fetch AS rows_fetched, w.count_insert AS rows_inserted,
		w.count_update AS rows_updated, w.count_delete AS rows_deleted, f.io_reads, f.io_read_latency, f.io_writes, f.io_write_latency, f.io_misc_requests, f.io_misc_latency
	FROM information_schema.tables t
		LEFT JOIN performance_schema.table_io_waits_summary_by_table w ON w.object_schema = t.table_schema AND w.object_name = t.table_name
		LEFT JOIN (SELECT substring_index(substring_index(file_name, '/', -2), '/', 1) AS file_schema, substring_index(substring_index(file_name, '/', -1), '.', 1) AS file_table,
				sum(count_read) AS io_reads, round(sum(sum_timer_read) / 1000000000000, 2) AS io_read_latency, sum(count_write) AS io_writes,
				round(sum(sum_timer_write) / 1000000000000, 2) AS io_write_latency, sum(count_misc) AS io_misc_requests, round(sum(sum_timer_misc) / 1000000000000, 2) AS io_misc_latency
			FROM performance_schema.file_summary_by_instance GROUP BY 1, 2) f ON f.file_schema = t.table_schema AND f.file_table = t.table_name
	WHERE t.table_type = 'BASE TABLE' AND t.table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
) AS stats
WHERE (wanted_schema = '' OR table_schema = wanted_schema) AND (wanted_table = '' OR table_name = wanted_table)
ORDER BY CASE sort_by WHEN 'row_count' THEN row_count WHEN 'rows_fetched' THEN rows_fetched WHEN 'rows_inserted' THEN rows_inserted
	WHEN 'rows_updated' THEN rows_updated WHEN 'rows_deleted' THEN rows_deleted WHEN 'total_latency_secs' THEN total_latency_secs ELSE size_MB END DESC,
	table_schema, table_name LIMIT ?`,
	}, {
		name:        "mysql-list-tables-missing-unique-indexes",
		description: "List the tables that have neither a primary key nor a unique key.",
		parameters:  []parameter.Spec{schema, limitParam(50)},
		statement: `SELECT t.table_schema, t.table_name
FROM (SELECT ? AS wanted_schema) AS wanted, information_schema.tables t
WHERE t.table_type = 'BASE TABLE' AND t.table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
	AND (wanted_schema = '' OR t.table_schema = wanted_schema)
	AND NOT EXISTS (SELECT 1 FROM information_schema.table_constraints c
		WHERE c.table_schema = t.table_schema AND c.table_name = t.table_name AND c.constraint_type IN ('PRIMARY KEY', 'UNIQUE'))
ORDER BY t.table_schema, t.table_name LIMIT ?`,
	}, {
		name:        "mysql-list-table-fragmentation",
		description: "List the tables with unused space, those with the largest share first: bytes of data, of indexes, unused bytes, and the share in percent. OPTIMIZE TABLE frees the space.",
		parameters:  []parameter.Spec{schema, table, countParam("data_free_threshold_bytes", 1, "Only tables with at least this many unused bytes."), limitParam(10)},
		statement: `SELECT t.table_schema, t.table_name, t.data_length AS data_size, t.index_length AS index_size, t.data_free,
	coalesce(round(t.data_free * 100 / nullif(t.data_length + t.index_length, 0), 2), 0) AS fragmentation_percentage
FROM (SELECT ? AS wanted_schema, ? AS wanted_table) AS wanted, information_schema.tables t
WHERE t.table_type = 'BASE TABLE' AND t.table_schema NOT IN ('mysql', 'information_schema', 'performance_schema', 'sys')
	AND (wanted_schema = '' OR t.table_schema = wanted_schema) AND (wanted_table = '' OR t.table_name = wanted_table) AND t.data_free >= ?
ORDER BY fragmentation_percentage DESC, t.table_schema, t.table_name LIMIT ?`,
	}}
}
