// SPDX-License-Identifier: Apache-2.0
// How values read: times, durations, sizes and numbers.

const two = (number: number) => String(number).padStart(2, "0");

/** A moment in the time zone of the browser: "2026-11-23 19:05:07". `ms` is since 1970; "" for none. */
export function moment(ms: number | string | undefined): string {
  const at = new Date(Number(ms));
  if (!ms || Number.isNaN(at.getTime())) {
    return "";
  }
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** The same to the millisecond: "2026-11-23 19:05:07.042". */
export const exactMoment = (ms: number) => `${moment(ms)}.${String(ms % 1000).padStart(3, "0")}`;

/** "0.4 s", "12 s", "3 min 05 s", "2 h 07 min", "3 d 04 h". */
export function duration(ms: number): string {
  const seconds = Math.max(ms, 0) / 1000;
  const whole = Math.floor(seconds);
  if (seconds < 10) {
    return `${seconds.toFixed(1)} s`;
  }
  if (whole < 60) {
    return `${whole} s`;
  }
  if (whole < 3600) {
    return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  }
  if (whole < 86400) {
    return `${Math.floor(whole / 3600)} h ${two(Math.floor(whole / 60) % 60)} min`;
  }
  return `${Math.floor(whole / 86400)} d ${two(Math.floor(whole / 3600) % 24)} h`;
}

/** A number in few digits; what is not finite keeps its name. */
export function number(value: number | string, digits = 5): string {
  const read = Number(value);
  if (!Number.isFinite(read)) {
    return String(value);
  }
  const size = Math.abs(read);
  if (Number.isInteger(read) && size < 1e9) {
    return String(read);
  }
  return size >= 1e9 || size < 1e-4 ? read.toExponential(digits - 1).replace(/\.?0+e/, "e") : String(Number(read.toPrecision(digits)));
}

/** What is free of an amount: "6 of 8"; "" where the whole is not known. */
export const freeOf = (free: number, whole: number, spell: (amount: number) => string = String): string => (whole > 0 ? `${spell(free)} of ${spell(whole)}` : "");

/** "17 B", "1.5 KiB", "20 MiB". */
export function size(bytes: number): string {
  let left = bytes;
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (left < 1024) {
      return `${unit === "B" || left >= 10 ? Math.round(left) : left.toFixed(1)} ${unit}`;
    }
    left /= 1024;
  }
  return `${left.toFixed(1)} TiB`;
}
