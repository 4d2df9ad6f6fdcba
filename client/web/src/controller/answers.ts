// SPDX-License-Identifier: Apache-2.0
// What the controller answers: the parts of its replies that the page reads. Of MLflow's numbers some are strings, in which JavaScript
// loses no digit.

export interface Experiment {
  experiment_id: string;
  name: string;
  creation_time?: number | string;
  last_update_time?: number | string;
}
export interface RunInfo {
  run_id: string;
  run_name?: string;
  experiment_id: string;
  status: string;
  lifecycle_stage?: string;
  start_time?: number | string;
  end_time?: number | string;
  user_id?: string;
}
export interface Metric {
  key: string;
  value: number | string;
  step?: number | string;
  timestamp?: number | string;
}
export interface Pair {
  key: string;
  value: string;
}
export interface Run {
  info: RunInfo;
  data: { metrics?: Metric[]; params?: Pair[]; tags?: Pair[] };
}
export interface Point {
  step: number;
  at: number; // ms since 1970
  value: number;
}
export interface Artifact {
  path: string;
  is_dir?: boolean;
  file_size?: number | string;
}
export interface ArrayProgress {
  tasks: number;
  running: number;
  succeeded: number;
  failed: number;
  canceled: number;
}
export interface Job {
  id: string;
  state: string;
  name: string | null;
  owner: string;
  project: string;
  gpus: number;
  gpu_type: string | null;
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
  idle_since: string | null;
  kept_until: string | null; // a rank failed, and its nodes stay as they are until then
  reason: string | null;
  array: ArrayProgress | null;
  task: number | null; // its number in its array
  attempt: number; // the newest; 0 before the first
  on_node?: OnNode; // in lists of the jobs of a node
}
/** What a node had of a job last. */
export interface OnNode {
  attempt: number;
  cause: string | null;
  reason: string | null;
  devices: string;
  created_at: string;
  ended_at: string | null;
}
export interface Placement {
  node: string;
  first_rank: number;
  local_ranks: number;
  devices: string;
  cpus: number; // 0: not known
  memory_bytes: number; // likewise
  isolation: "user" | null;
  state: string;
}
export interface JobDetail extends Job {
  pool: string | null;
  priority: number;
  exit_code: number | null;
  failed_rank: number | null;
  failed_node: string | null;
  cause: string | null;
  spec: Spec;
  nodes: Placement[];
}
export interface JobEvent {
  seq: number;
  at: string;
  kind: string;
  attempt: number;
  detail: object | null;
}
export interface LogPiece {
  rank: number;
  stream: "stdout" | "stderr";
  text: string;
}
/** A line of output that a search has found. */
export interface LogMatch {
  rank: number;
  stream: "stdout" | "stderr";
  attempt: number;
  offset: number;
  at: string | null;
  text: string;
  cut: boolean;
}
/** A stream of a rank of an attempt. */
export type LogStream = Pick<LogMatch, "rank" | "stream" | "attempt">;
export interface Node {
  name: string;
  state: string;
  pool: string;
  pool_kind: string;
  gpu_type: string | null;
  gpus: number;
  free_gpus: number;
  unavailable_gpus: number;
  unavailable: string | null;
  cpus: number; // 0: its agent does not say
  free_cpus: number;
  memory_bytes: number; // 0: likewise
  free_memory_bytes: number;
  slots: boolean;
  beat_age_s: number | null;
  reason: string | null;
  window: { from: string; until: string; hard: boolean } | null; // maintenance: the one that it is in, or its next
}
/** A GPU, or a CPU slot of a node without GPUs. */
export interface Gpu {
  node: string;
  index: number;
  uuid: string;
  gpu_type: string;
  slot: boolean;
  pool: string;
  pool_kind: string;
  node_state: string;
  state: string;
  unavailable: string | null;
  holder: { job: string; name: string | null; owner: string; project: string; rank: number | null; since: string } | null;
  sample: {
    utilization_percent: number | null;
    memory_bytes: number | null;
    memory_total_bytes: number | null;
    power_w: number | null;
    temperature_c: number | null;
  } | null;
}
export interface NodeDetail extends Node {
  address: string;
  version: string;
  devices: { index: number; uuid: string; type: string; memory_bytes: number; unavailable?: string | null }[];
}
/** Columns with a value for each moment; null where it is not known. */
export interface NodeSamples {
  at_ms: number[];
  cpu_percent: (number | null)[];
  memory_bytes: (number | null)[];
  gpus: {
    index: number;
    uuid: string;
    utilization_percent: (number | null)[];
    memory_bytes: (number | null)[];
    power_w: (number | null)[];
    temperature_c: (number | null)[];
  }[];
}
export interface Overview {
  at: string;
  gpus: { gpu_type: string; pool: string; kind: string; nodes: number; total: number; free: number; unavailable: number }[];
  nodes: Record<string, number>;
  jobs: Record<string, number>;
  oldest_waiting_at: string | null;
  users: { owner: string | null; gpus: number; jobs: number }[];
  problems: { node: string; state: string; unavailable_gpus: number; reason: string | null }[];
  problem_count: number;
  leases_held: boolean;
  disk_full: boolean;
}
export interface UsageSums {
  gpu_seconds: number;
  measured_gpu_seconds: number;
  idle_gpu_seconds: number;
  energy_joules: number;
  attempts: number;
  cost?: number;
}
export interface UsageRow extends UsageSums {
  at: string;
  project?: string;
  owner?: string;
  pool?: string;
  gpu_type?: string;
  reserved?: boolean;
}
export interface Usage {
  since: string;
  until: string;
  currency: string | null;
  usage: UsageRow[];
  total: UsageSums;
}
/** GET /v1/queue. */
export interface Queue {
  as_of: string;
  policy: string;
  count: number;
  held: number;
  blocked: number;
  jobs: QueuedJob[];
  running: { id: string; name: string | null; owner: string; nodes: string[]; node_count: number; gpus: number; ends_at: string }[];
}
export interface QueuedJob {
  position: number;
  id: string;
  name: string | null;
  owner: string;
  project: string;
  pool: string | null;
  gpu_type: string | null;
  gpus: number;
  tasks: number | null;
  priority: number;
  submitted_at: string;
  estimate_s: number;
  allowance_s: number | null;
  share_delay_s: number | null;
  due_at: string | null;
  reason: { code: string; text: string } | null;
  start: { at: string | null; later_than: string | null; confidence: string } | null;
  reservations: { pool: string; gpu_type: string; from: string; firm: boolean; all: boolean; nodes: { node: string; gpus: number }[] }[];
}
/** The waits of the jobs of a user or a project. */
export interface SimulationGroup {
  name: string;
  jobs: number;
  avg_wait_s: number;
  p50_wait_s: number;
  p99_wait_s: number;
}
export interface SimulationResult {
  policy: string;
  jobs: number;
  refused: number;
  avg_jct_s: number;
  p50_jct_s: number;
  p99_jct_s: number;
  avg_wait_s: number;
  p50_wait_s: number;
  p90_wait_s: number;
  p99_wait_s: number;
  utilization: number;
  makespan_s: number;
  preemptions: number;
  owners: SimulationGroup[];
  projects: SimulationGroup[];
}
/** POST /v1/simulations. */
export interface Simulation {
  as_of: string;
  jobs: number;
  not_run: number;
  oldest_at: string | null;
  more: boolean;
  nodes: string;
  results: SimulationResult[];
  cut: string[];
  refusal: string | null;
}
export interface Account {
  kind: "project" | "user";
  name: string;
  gpus: number;
  queued_jobs: number;
  share?: number;
  target?: number;
  delay_s?: number;
  use: { gpu_type: string; gpus: number; entitled: number; quota?: number | null; max_gpus: number | null }[];
  users?: { name: string; gpus: number; queued_jobs: number; share?: number; target?: number; delay_s?: number }[];
}
export interface MaintenanceWindow {
  id: string;
  nodes: string[] | null;
  pool: string | null;
  from: string;
  until: string;
  hard: boolean;
  reason: string | null;
}
/** What the controller says of a job that waits, or would be submitted. */
export interface WaitAnswer {
  refusal?: { field: string; detail: string; hint: string } | null;
  reason: { code: string; text: string } | null;
  turn: { ahead: number; ahead_more: boolean; estimate_s: number; estimate_from: { runs: number } } | null;
  nodes: { total: number; usable: number; failed: { test: string; nodes: number; names: string[] }[] } | null;
  start: { at: string | null; earliest_at: string | null; latest_at: string | null; later_than: string | null; confidence: string } | null;
  smallest_change: { field: string; value: unknown; text: string } | null;
}
export interface AttemptTiming {
  attempt: number;
  state: string;
  moments: Record<string, number | null>; // ms since the submission was received
  marks: { name: string; rank: number; node: string; at_ms: number | null }[];
}
export interface Attempt {
  attempt: number;
  state: string;
  cause: string | null;
  reason: string | null;
  ended_at: string | null;
  failed_rank: number | null;
  nodes: Placement[];
  ranks: { rank: number; exit_code: number; signal: number | null }[];
}
export interface Result {
  rank: number;
  kind: "value" | "exception";
  size: number;
  json?: unknown;
  error?: { message?: unknown } | null;
}
/** RANK/PATH, of what a rank has left in $GPUCTL_OUTPUT_DIR. */
export interface KeptFile {
  path: string;
  size: number;
  complete: boolean;
}
export interface KeptFiles {
  files: KeptFile[];
  left_out: { files: number; bytes: number };
  next: string | null;
}
export interface Webhook {
  id: string;
  name: string | null;
  owner: string;
  url: string;
  scope: "own" | "named" | "all";
  project: string | null;
  events: string[];
  tasks: boolean;
  enabled: boolean;
  reason: string | null;
  failing_since: string | null;
  created_at: string;
  last_delivery: Delivery | null;
  failures: number; // in a row, among the newest 20 deliveries
}
export interface Delivery {
  id: string;
  state: "PENDING" | "DELIVERED" | "FAILED";
  job_id: string | null;
  event: string | null;
  tries: number;
  status: number | null;
  error: string | null;
  created_at: string;
  tried_at: string | null;
  next_at: string | null;
}
/** Its value is in no answer. */
export interface Secret {
  name: string;
  project: string | null;
  bytes: number;
  set_by: string;
  set_at: string;
}
export type Spec = Record<string, unknown>;
export interface JobRun {
  attempt: number | null;
  run_id: string;
  experiment_id: string;
  tracking_uri: string | null;
}
