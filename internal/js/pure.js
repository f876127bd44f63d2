// Removes whatever could make two runs of one script differ: the clock, the time zone of the
// machine, randomness, and what shows the work of the garbage collector. Dates with an
// explicit time remain, in UTC.
(() => {
  "use strict";
  const missing = (what) => () => { throw new Error(`${what} is not available: this script must be a pure function`); };
  Math.random = missing("Math.random");
  for (const name of ["WeakRef", "FinalizationRegistry", "performance", "Atomics", "SharedArrayBuffer"]) delete globalThis[name];

  const Native = Date;
  const zoned = /(?:Z|UTC|GMT|[+-]\d\d:?\d\d)\s*(?:\(.*\))?$/i;
  const dateOnly = /^[+-]?\d{4,6}(?:-\d\d(?:-\d\d)?)?$/;
  const iso = /^[+-]?\d{4,6}-\d\d-\d\dT/;
  const parse = (text) => {
    text = String(text).trim();
    if (zoned.test(text) || dateOnly.test(text)) return Native.parse(text);
    return Native.parse(text + (iso.test(text) ? "Z" : " UTC"));
  };
  const timeOf = (value) => {
    if (value instanceof Native) return value.getTime();
    const primitive = typeof value === "object" && value !== null ? value.valueOf() : value;
    return typeof primitive === "string" ? parse(primitive) : Number(primitive);
  };
  function PureDate(...args) {
    if (new.target === undefined || args.length === 0) missing("the clock (Date)")();
    const time = args.length === 1 ? timeOf(args[0]) : Native.UTC(...args);
    return Reflect.construct(Native, [time], new.target);
  }
  Object.defineProperty(PureDate, "name", { value: "Date" });
  Object.defineProperty(PureDate, "length", { value: 7 });
  PureDate.UTC = Native.UTC;
  PureDate.parse = parse;
  PureDate.now = missing("the clock (Date.now)");

  const proto = Native.prototype;
  for (const part of ["FullYear", "Month", "Date", "Day", "Hours", "Minutes", "Seconds", "Milliseconds"])
    for (const verb of ["get", "set"])
      if (proto[verb + part]) proto[verb + part] = proto[`${verb}UTC${part}`];
  const { toISOString, toUTCString, getTime } = proto;
  const valid = (date, text) => Number.isNaN(getTime.call(date)) ? "Invalid Date" : text(toISOString.call(date));
  proto.getTimezoneOffset = function () { return getTime.call(this) * 0; };
  proto.getYear = function () { return this.getUTCFullYear() - 1900; };
  delete proto.setYear;
  proto.toString = proto.toLocaleString = function () { return toUTCString.call(this); };
  proto.toDateString = proto.toLocaleDateString = function () { return valid(this, (s) => s.slice(0, -14)); };
  proto.toTimeString = proto.toLocaleTimeString = function () { return valid(this, (s) => s.slice(-13, -5) + " UTC"); };
  PureDate.prototype = proto;
  proto.constructor = PureDate;
  globalThis.Date = PureDate;
})();
