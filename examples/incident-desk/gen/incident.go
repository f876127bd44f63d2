package main

import "strconv"

// failures is how many requests fail in each minute from 14:03 to 14:21: a deployment
// breaks the checkout's upstream, clients retry, and the rollback restores it.
var failures = [19]int{4, 13, 21, 16, 7, 2, 9, 19, 24, 14, 6, 3, 11, 17, 12, 5, 1, 4, 2}

// broken reports whether checkouts fail at that second.
func broken(second int) bool { return second >= at(14, 3, 0) && second < at(14, 22, 0) }

func (d *day) incident() {
	d.log(at(14, 2, 48), request{client: "192.0.2.9", user: "deploy", line: "POST /admin/deploy HTTP/1.1", status: 202, size: 64, agent: "shipit/3.4"})
	for i, n := range failures {
		for range n {
			d.fail(at(14, 3+i, d.between(0, 59)))
		}
	}
	d.log(at(14, 20, 31), request{client: "192.0.2.9", user: "deploy", line: "POST /admin/rollback HTTP/1.1", status: 202, size: 64, agent: "shipit/3.4"})
}

// fail logs one failing request, mostly of the checkout.
func (d *day) fail(second int) {
	r := request{client: client(d.between(0, 219)), line: "POST /api/checkout HTTP/1.1", status: 502, size: 157, agent: pick(d, apps)}
	switch n := d.between(1, 100); {
	case n <= 30:
		r.status, r.size = 504, 167
	case n <= 38:
		r.line = "POST /api/payments/confirm HTTP/1.1"
	case n <= 43:
		r.line, r.status, r.size = "PUT /api/cart HTTP/1.1", 503, 92
	case n <= 45:
		r.line, r.status, r.size = "GET /api/orders?since=2026-03-01 HTTP/1.1", 504, 167
	}
	d.log(second, r)
}

// loginAttack logs a client that tries passwords on a page that the shop does not have,
// until the rate limit stops it.
func (d *day) loginAttack() {
	second := at(3, 12, 7)
	for i := range 187 {
		r := request{client: "198.51.100.23", line: "POST /wp-login.php HTTP/1.1", status: 404, size: 548, agent: "python-requests/2.32.3"}
		switch {
		case i%11 == 3:
			r.status, r.size = 403, 146
		case i > 60 && i%3 != 0:
			r.status, r.size = 429, 0
		}
		d.log(second, r)
		second += d.between(1, 12)
	}
}

// oddities logs lines that occur in real logs and rarely in a parser's tests.
func (d *day) oddities() {
	d.scanner()
	d.quotes()
	d.editors()
	d.malformed()
}

// scanner logs a client that looks for vulnerable pages.
func (d *day) scanner() {
	paths := []string{"/.env", "/.git/config", "/phpmyadmin/", "/backup.zip", "/cgi-bin/luci", "/api/v1/../../etc/passwd", "/server-status", "/actuator/health"}
	for i, path := range paths {
		d.log(at(5, 41, 3*i), request{client: "203.0.113.77", line: "GET " + path + " HTTP/1.1", status: 404, size: 548, agent: "Mozilla/5.0 zgrab/0.x"})
	}
	d.log(at(5, 42, 2), request{client: "203.0.113.77", line: `\x16\x03\x01\x00\xEE\x01\x00\x00\xEA\x03\x03`, status: 400, size: 157})
	d.log(at(5, 42, 9), request{client: "203.0.113.77", line: "", status: 408, size: -1})
}

// quotes logs requests with a quote inside a quoted field, escaped as web servers do.
func (d *day) quotes() {
	agent := `Mozilla/5.0 (compatible; \"LinkCheck\"/2.1; +https://bots.example/linkcheck)`
	for i, page := range pages {
		d.log(at(1, 15, 4*i), request{client: "2001:db8:beef::17", line: "HEAD " + page + " HTTP/1.1", status: 200, size: -1, agent: agent})
	}
	d.log(at(10, 22, 40), request{client: client(31), line: `GET /search?q=\"warm+white\" HTTP/2.0`, status: 200, size: 7311,
		referrer: `https://www.search.example/?q=\"desk lamp\"`, agent: browsers[0]})
	d.log(at(16, 8, 12), request{client: client(58), line: "GET /lamps HTTP/2.0", status: 200, size: 15102, agent: `Mozilla/5.0 (a \\ and a \" walk into a bar)`})
}

// editors logs the requests of the shop's staff.
func (d *day) editors() {
	for hour := 8; hour < 18; hour++ {
		id := strconv.Itoa(d.between(1000, 2300))
		d.log(at(hour, d.between(0, 59), 20), request{client: "192.0.2.17", user: "mara", line: "GET /admin/products/" + id + " HTTP/1.1", status: 200, size: d.between(5100, 7400), agent: browsers[2]})
		d.log(at(hour, d.between(0, 59), 40), request{client: "192.0.2.17", user: "mara", line: "PATCH /admin/products/" + id + " HTTP/1.1", status: 204, size: -1, referrer: shop + "/admin/products/" + id, agent: browsers[2]})
	}
}

// malformed adds lines that no parser of the combined format should accept.
func (d *day) malformed() {
	d.raw(at(0, 0, 1), "2026-03-17T00:00:01Z logrotate[814]: access.log opened")
	d.raw(at(6, 25, 0), `192.0.2.131 - - [17/Mar/2026:06:25:00 +0000] "GET /lamps/brass-desk-lamp HT`)
	d.raw(at(9, 47, 30), `198.51.100.61 - - [17/Mar/2026:09:47:30 +0000] "GET /api/session HTTP/1.1" 200`)
	d.raw(at(14, 11, 52), `203.0.113.44 - - [17/Mar/2026:14:11:52 203.0.113.58 - - [17/Mar/2026:14:11:52 +0000] "POST /api/checkout HTTP/1.1" 502 157 "-" "LampShop/4.12.0 (iOS 18.3)"`)
	d.raw(at(14, 11, 53), `2026/03/17 14:11:53 [error] 31#31: *88213 upstream timed out (110: Operation timed out) while reading response header from upstream`)
	d.raw(at(19, 30, 5), `192.0.2.88 - - [17/Mar/2026:19:30:05 +0000] "GET /lamps HTTP/2.0" OK 15102 "-" "curl/8.12.1"`)
	d.raw(at(22, 4, 44), `- - - [] "" - - "" ""`)
}
