PRAGMA application_id = 1735423331;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE attempts (
  epoch INTEGER PRIMARY KEY, -- incarnation << 32 | n
  job_key INTEGER NOT NULL, -- jobs.key
  number INTEGER NOT NULL, -- within the job, from 1
  state TEXT NOT NULL CHECK (CASE state WHEN 'RESERVED' THEN 1 WHEN 'PREPARING' THEN 1 WHEN 'PREPARED' THEN 1 WHEN 'STARTED' THEN 1 WHEN 'STOPPING' THEN 1 WHEN 'FLUSHING' THEN 1 WHEN 'ENDED' THEN 1 ELSE 0 END),
  cause TEXT NOT NULL CHECK (CASE cause WHEN 'NONE' THEN 1 WHEN 'RANK_FAILED' THEN 1 WHEN 'EXEC_FAILED' THEN 1 WHEN 'RESULT_MISSING' THEN 1 WHEN 'CANCELED' THEN 1 WHEN 'TIME_LIMIT' THEN 1 WHEN 'DECLINED' THEN 1 WHEN 'PORT_TAKEN' THEN 1 WHEN 'PREPARE_EXPIRED' THEN 1 WHEN 'NODE_LOST' THEN 1 WHEN 'SHIM_LOST' THEN 1 WHEN 'STAGE_FAILED' THEN 1 ELSE 0 END), -- what ended it
  cause_text TEXT, -- the same for people; NULL: nothing to add
  pool TEXT NOT NULL,
  master_address TEXT, -- of the rendezvous; NULL: none
  master_port INTEGER NOT NULL, -- 0: none
  created_ms INTEGER NOT NULL,
  started_ms INTEGER NOT NULL, -- 0: not yet
  ended_ms INTEGER NOT NULL, -- 0: not yet
  failed_rank INTEGER NOT NULL, -- the first that failed; -1: none
  failed_code INTEGER NOT NULL, -- its exit code
  image TEXT -- container image; NULL: none. Kept for later
) STRICT;
INSERT INTO "attempts" VALUES(4294967297,1,1,'ENDED','NONE',NULL,'default',NULL,0,1795306591903,1795306591903,1795306592003,-1,0,NULL);
INSERT INTO "attempts" VALUES(4294967298,2,1,'ENDED','NONE',NULL,'default','127.0.0.1',29465,1795306591910,1795306591997,1795306592058,-1,0,NULL);
INSERT INTO "attempts" VALUES(4294967299,4,1,'ENDED','RANK_FAILED','rank 0 on node node0 exited with 3: no luck','default',NULL,0,1795306592003,1795306592003,1795306592178,0,3,NULL);
INSERT INTO "attempts" VALUES(4294967300,3,1,'ENDED','NONE',NULL,'default',NULL,0,1795306592058,1795306592058,1795306592144,-1,0,NULL);
INSERT INTO "attempts" VALUES(4294967301,5,1,'ENDED','CANCELED','canceled by admin','default',NULL,0,1795306592179,1795306592179,1795306592405,-1,0,NULL);
INSERT INTO "attempts" VALUES(4294967302,6,1,'STARTED','NONE',NULL,'default','127.0.0.1',24199,1795306592407,1795306592503,0,-1,0,NULL);
INSERT INTO "attempts" VALUES(4294967303,7,1,'STARTED','NONE',NULL,'default',NULL,0,1795306592410,1795306592410,0,-1,0,NULL);
CREATE TABLE blobs (
  hash BLOB NOT NULL UNIQUE, -- SHA-256
  size INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  bytes BLOB -- NULL: they are a file
) STRICT;
INSERT INTO "blobs" VALUES(X'CE2F3100F958B98815A5A2BA92FB80C78AC83F3287245AD377BA12B7F9B3A19B',140000,1795306591915,NULL);
CREATE TABLE events ( -- the history of each job: only ever appended to, without gaps
  job_key INTEGER NOT NULL, -- jobs.key
  seq INTEGER NOT NULL, -- from 1
  at_ms INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (CASE kind WHEN 'submitted' THEN 1 WHEN 'staging' THEN 1 WHEN 'staged' THEN 1 WHEN 'placed' THEN 1 WHEN 'started' THEN 1 WHEN 'running' THEN 1 WHEN 'cancel_asked' THEN 1 WHEN 'stopping' THEN 1 WHEN 'requeued' THEN 1 WHEN 'logs_cut' THEN 1 WHEN 'succeeded' THEN 1 WHEN 'failed' THEN 1 WHEN 'canceled' THEN 1 WHEN 'timed_out' THEN 1 ELSE 0 END),
  attempt INTEGER NOT NULL, -- number; 0: before the first
  detail TEXT, -- JSON object; NULL: none
  PRIMARY KEY (job_key, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO "events" VALUES(1,1,1795306591903,'submitted',0,NULL);
INSERT INTO "events" VALUES(1,2,1795306591903,'placed',1,'{"pool":"default","gpu_type":"cpu","nodes":1}');
INSERT INTO "events" VALUES(1,3,1795306591903,'started',1,NULL);
INSERT INTO "events" VALUES(1,4,1795306591997,'running',1,NULL);
INSERT INTO "events" VALUES(1,5,1795306592003,'succeeded',1,NULL);
INSERT INTO "events" VALUES(2,1,1795306591910,'submitted',0,NULL);
INSERT INTO "events" VALUES(2,2,1795306591910,'placed',1,'{"pool":"default","gpu_type":"cpu","nodes":2}');
INSERT INTO "events" VALUES(2,3,1795306591997,'started',1,NULL);
INSERT INTO "events" VALUES(2,4,1795306592050,'running',1,NULL);
INSERT INTO "events" VALUES(2,5,1795306592058,'succeeded',1,NULL);
INSERT INTO "events" VALUES(3,1,1795306591917,'submitted',0,NULL);
INSERT INTO "events" VALUES(3,2,1795306591917,'staging',0,'{"nodes":["node0"]}');
INSERT INTO "events" VALUES(3,3,1795306592003,'staged',0,NULL);
INSERT INTO "events" VALUES(3,4,1795306592058,'placed',1,'{"pool":"default","gpu_type":"cpu","nodes":1}');
INSERT INTO "events" VALUES(3,5,1795306592058,'started',1,NULL);
INSERT INTO "events" VALUES(3,6,1795306592137,'running',1,NULL);
INSERT INTO "events" VALUES(3,7,1795306592144,'succeeded',1,NULL);
INSERT INTO "events" VALUES(4,1,1795306591918,'submitted',0,NULL);
INSERT INTO "events" VALUES(4,2,1795306592003,'placed',1,'{"pool":"default","gpu_type":"cpu","nodes":1}');
INSERT INTO "events" VALUES(4,3,1795306592003,'started',1,NULL);
INSERT INTO "events" VALUES(4,4,1795306592091,'running',1,NULL);
INSERT INTO "events" VALUES(4,5,1795306592135,'stopping',1,'{"reason":"rank 0 on node node0 exited with 3: no luck"}');
INSERT INTO "events" VALUES(4,6,1795306592178,'failed',1,'{"reason":"rank 0 on node node0 exited with 3: no luck"}');
INSERT INTO "events" VALUES(5,1,1795306592179,'submitted',0,NULL);
INSERT INTO "events" VALUES(5,2,1795306592179,'placed',1,'{"pool":"default","gpu_type":"cpu","nodes":1}');
INSERT INTO "events" VALUES(5,3,1795306592179,'started',1,NULL);
INSERT INTO "events" VALUES(5,4,1795306592240,'running',1,NULL);
INSERT INTO "events" VALUES(5,5,1795306592354,'cancel_asked',1,'{"by":"admin"}');
INSERT INTO "events" VALUES(5,6,1795306592354,'stopping',1,'{"reason":"canceled by admin"}');
INSERT INTO "events" VALUES(5,7,1795306592405,'canceled',1,'{"reason":"canceled by admin"}');
INSERT INTO "events" VALUES(6,1,1795306592407,'submitted',0,NULL);
INSERT INTO "events" VALUES(6,2,1795306592407,'placed',1,'{"pool":"default","gpu_type":"cpu","nodes":2}');
INSERT INTO "events" VALUES(6,3,1795306592503,'started',1,NULL);
INSERT INTO "events" VALUES(6,4,1795306592562,'running',1,NULL);
INSERT INTO "events" VALUES(7,1,1795306592410,'submitted',0,NULL);
INSERT INTO "events" VALUES(7,2,1795306592410,'placed',1,'{"pool":"default","gpu_type":"cpu","nodes":1}');
INSERT INTO "events" VALUES(7,3,1795306592410,'started',1,NULL);
INSERT INTO "events" VALUES(7,4,1795306592506,'running',1,NULL);
INSERT INTO "events" VALUES(8,1,1795306592611,'submitted',0,NULL);
INSERT INTO "events" VALUES(9,1,1795306592615,'submitted',0,NULL);
CREATE TABLE jobs (
  key INTEGER PRIMARY KEY, -- increases with every submission
  id TEXT NOT NULL, -- 16 random characters: the name of the job outside
  owner TEXT NOT NULL, -- of the token that submitted it
  name TEXT, -- given by the owner; NULL: none
  project TEXT NOT NULL,
  gpus INTEGER NOT NULL, -- in total over all nodes
  gpu_type TEXT, -- NULL: any
  created_ms INTEGER NOT NULL, -- wall clock, as all columns that end so
  state TEXT NOT NULL CHECK (CASE state WHEN 'QUEUED' THEN 1 WHEN 'STAGING' THEN 1 WHEN 'PLACED' THEN 1 WHEN 'RUNNING' THEN 1 WHEN 'SUCCEEDED' THEN 1 WHEN 'FAILED' THEN 1 WHEN 'CANCELED' THEN 1 WHEN 'TIMED_OUT' THEN 1 ELSE 0 END),
  seq INTEGER NOT NULL, -- of its last event
  attempt INTEGER NOT NULL, -- number of the newest attempt; 0: none yet
  user_failures INTEGER NOT NULL, -- attempts that ended by the user's fault
  infra_failures INTEGER NOT NULL, -- attempts that ended by ours
  pool TEXT, -- of the newest attempt; NULL: none yet
  started_ms INTEGER NOT NULL, -- 0: not yet
  ended_ms INTEGER NOT NULL, -- 0: not yet
  exit_code INTEGER NOT NULL, -- -1 while the state is not terminal
  failed_rank INTEGER NOT NULL, -- the first that failed; -1: none
  failed_node TEXT, -- where that was; NULL: nowhere
  cause TEXT NOT NULL CHECK (CASE cause WHEN 'NONE' THEN 1 WHEN 'RANK_FAILED' THEN 1 WHEN 'EXEC_FAILED' THEN 1 WHEN 'RESULT_MISSING' THEN 1 WHEN 'CANCELED' THEN 1 WHEN 'TIME_LIMIT' THEN 1 WHEN 'DECLINED' THEN 1 WHEN 'PORT_TAKEN' THEN 1 WHEN 'PREPARE_EXPIRED' THEN 1 WHEN 'NODE_LOST' THEN 1 WHEN 'SHIM_LOST' THEN 1 WHEN 'STAGE_FAILED' THEN 1 ELSE 0 END),
  reason TEXT -- one sentence for people; NULL: nothing to say
) STRICT;
INSERT INTO "jobs" VALUES(1,'44awn3hxetqqnkl7','admin','done','default',1,NULL,1795306591903,'SUCCEEDED',5,1,0,0,'default',1795306591997,1795306592003,0,-1,NULL,'NONE',NULL);
INSERT INTO "jobs" VALUES(2,'stqzltfvorruaxdy','admin','gang','default',3,NULL,1795306591910,'SUCCEEDED',5,1,0,0,'default',1795306592050,1795306592058,0,-1,NULL,'NONE',NULL);
INSERT INTO "jobs" VALUES(3,'pz2engpdbtcnsoyo','admin','staged','default',1,NULL,1795306591917,'SUCCEEDED',7,1,0,0,'default',1795306592137,1795306592144,0,-1,NULL,'NONE',NULL);
INSERT INTO "jobs" VALUES(4,'qgtkoaxmbg2b4zkw','admin','unlucky','default',1,NULL,1795306591918,'FAILED',6,1,1,0,'default',1795306592091,1795306592178,3,0,'node0','RANK_FAILED','rank 0 on node node0 exited with 3: no luck');
INSERT INTO "jobs" VALUES(5,'odkdugf4cts5bwqd','admin','canceled','default',1,NULL,1795306592179,'CANCELED',7,1,0,0,'default',1795306592240,1795306592405,130,-1,NULL,'CANCELED','canceled by admin');
INSERT INTO "jobs" VALUES(6,'m4xfsrrr4rhhcgaf','admin','running','default',3,NULL,1795306592407,'RUNNING',4,1,0,0,'default',1795306592562,0,-1,-1,NULL,'NONE',NULL);
INSERT INTO "jobs" VALUES(7,'x6yoauhmyf52bdik','admin','alone','default',1,NULL,1795306592410,'RUNNING',4,1,0,0,'default',1795306592506,0,-1,-1,NULL,'NONE',NULL);
INSERT INTO "jobs" VALUES(8,'xggscrpsnk7lvfhr','admin','waiting','default',3,NULL,1795306592611,'QUEUED',1,0,0,0,NULL,0,0,-1,-1,NULL,'NONE',NULL);
INSERT INTO "jobs" VALUES(9,'cptsiasbki5m2ew6','admin','behind','default',1,NULL,1795306592615,'QUEUED',1,0,0,0,NULL,0,0,-1,-1,NULL,'NONE',NULL);
CREATE TABLE members ( -- one node's part of an attempt
  epoch INTEGER NOT NULL, -- attempts.epoch
  node_rank INTEGER NOT NULL,
  node TEXT NOT NULL, -- nodes.name
  first_rank INTEGER NOT NULL,
  local_ranks INTEGER NOT NULL,
  devices TEXT NOT NULL, -- their indices on the node, separated by commas
  state TEXT NOT NULL CHECK (CASE state WHEN 'ORDERED' THEN 1 WHEN 'PREPARED' THEN 1 WHEN 'RUNNING' THEN 1 WHEN 'EXITED' THEN 1 WHEN 'FLUSHED' THEN 1 WHEN 'LOST' THEN 1 ELSE 0 END),
  PRIMARY KEY (epoch, node_rank)
) STRICT, WITHOUT ROWID;
INSERT INTO "members" VALUES(4294967297,0,'node0',0,1,'0','FLUSHED');
INSERT INTO "members" VALUES(4294967298,0,'node1',0,2,'0,1','FLUSHED');
INSERT INTO "members" VALUES(4294967298,1,'node0',2,1,'1','FLUSHED');
INSERT INTO "members" VALUES(4294967299,0,'node0',0,1,'0','FLUSHED');
INSERT INTO "members" VALUES(4294967300,0,'node0',0,1,'1','FLUSHED');
INSERT INTO "members" VALUES(4294967301,0,'node0',0,1,'0','FLUSHED');
INSERT INTO "members" VALUES(4294967302,0,'node0',0,2,'0,1','RUNNING');
INSERT INTO "members" VALUES(4294967302,1,'node1',2,1,'0','RUNNING');
INSERT INTO "members" VALUES(4294967303,0,'node1',0,1,'1','RUNNING');
CREATE TABLE meta ( -- single numbers
  name TEXT PRIMARY KEY, -- incarnation: how often the controller was started; the upper half of every epoch
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "meta" VALUES('incarnation',1);
CREATE TABLE nodes (
  name TEXT PRIMARY KEY,
  boot_id TEXT NOT NULL, -- of the kernel: another one proves a reboot
  host_id TEXT NOT NULL, -- SHA-256 of the machine id: agents on one host share it
  version TEXT NOT NULL, -- of the agent
  address TEXT NOT NULL, -- where its ranks can be reached
  pool TEXT NOT NULL,
  pool_kind TEXT NOT NULL CHECK (CASE pool_kind WHEN 'on-demand' THEN 1 WHEN 'reserved' THEN 1 ELSE 0 END),
  state TEXT NOT NULL CHECK (CASE state WHEN 'READY' THEN 1 WHEN 'SUSPECT' THEN 1 WHEN 'DRAINING' THEN 1 WHEN 'DRAINED' THEN 1 WHEN 'LOST' THEN 1 ELSE 0 END),
  reason TEXT, -- of a drain or a loss; NULL: none
  isolation TEXT NOT NULL CHECK (CASE isolation WHEN 'none' THEN 1 WHEN 'cgroup1' THEN 1 WHEN 'cgroup2' THEN 1 ELSE 0 END),
  slots INTEGER NOT NULL CHECK (slots IN (0, 1)), -- 1: devices are CPU slots
  devices TEXT NOT NULL, -- JSON array of {index, uuid, type, memory_bytes}
  registered_ms INTEGER NOT NULL,
  expires_at_ms INTEGER, -- when its provider takes it back; NULL: never. Kept for later
  provider TEXT -- who supplied it; NULL: nobody. Kept for later
) STRICT, WITHOUT ROWID;
INSERT INTO "nodes" VALUES('node0','00000000-0000-4000-8000-000000000000','0000000000000000000000000000000000000000000000000000000000000000','0.1.0','127.0.0.1','default','on-demand','READY',NULL,'cgroup2',1,'[{"index":0,"uuid":"slot-0","type":"cpu","memory_bytes":0},{"index":1,"uuid":"slot-1","type":"cpu","memory_bytes":0}]',1795306591893,NULL,NULL);
INSERT INTO "nodes" VALUES('node1','00000000-0000-4000-8000-000000000000','0000000000000000000000000000000000000000000000000000000000000000','0.1.0','127.0.0.1','default','on-demand','READY',NULL,'cgroup2',1,'[{"index":0,"uuid":"slot-0","type":"cpu","memory_bytes":0},{"index":1,"uuid":"slot-1","type":"cpu","memory_bytes":0}]',1795306591896,NULL,NULL);
CREATE TABLE ranks ( -- how each rank ended
  epoch INTEGER NOT NULL, -- attempts.epoch
  rank INTEGER NOT NULL, -- over all nodes
  code INTEGER NOT NULL, -- exit code; 128 + signal when killed by one
  signal INTEGER NOT NULL, -- 0: none
  at_ms INTEGER NOT NULL, -- wall clock of the node
  out_bytes INTEGER NOT NULL, -- final size of its stdout
  err_bytes INTEGER NOT NULL, -- final size of its stderr
  PRIMARY KEY (epoch, rank)
) STRICT, WITHOUT ROWID;
INSERT INTO "ranks" VALUES(4294967297,0,0,0,1795306591994,5,7);
INSERT INTO "ranks" VALUES(4294967298,0,0,0,1795306592051,2,0);
INSERT INTO "ranks" VALUES(4294967298,1,0,0,1795306592051,2,0);
INSERT INTO "ranks" VALUES(4294967298,2,0,0,1795306592044,2,0);
INSERT INTO "ranks" VALUES(4294967299,0,3,0,1795306592091,0,0);
INSERT INTO "ranks" VALUES(4294967300,0,0,0,1795306592141,7,0);
INSERT INTO "ranks" VALUES(4294967301,0,143,15,1795306592402,10,0);
CREATE TABLE replies ( -- the first answer to a request with an Idempotency-Key
  key INTEGER PRIMARY KEY, -- in order of arrival
  scope BLOB NOT NULL, -- SHA-256 of owner, route and key; unique, see scopes.c
  body BLOB NOT NULL, -- SHA-256 of the request body
  job_key INTEGER NOT NULL, -- that lives as long as this row; 0: none
  status INTEGER NOT NULL, -- of HTTP
  at_ms INTEGER NOT NULL,
  answer TEXT NOT NULL
) STRICT;
CREATE TABLE results ( -- what each rank of a function left behind, and what ranks that failed said
  epoch INTEGER NOT NULL, -- attempts.epoch
  rank INTEGER NOT NULL, -- over all nodes
  kind TEXT NOT NULL CHECK (CASE kind WHEN 'value' THEN 1 WHEN 'exception' THEN 1 ELSE 0 END),
  size INTEGER NOT NULL, -- of the pickle
  hash BLOB, -- of the pickle: blobs.hash; NULL: there is none
  json TEXT, -- the value as JSON, or the error file of the rank; NULL: there is none
  PRIMARY KEY (epoch, rank)
) STRICT, WITHOUT ROWID;
INSERT INTO "results" VALUES(4294967299,0,'exception',0,NULL,'{"message": "no luck"}
');
CREATE TABLE specs (
  job_key INTEGER PRIMARY KEY, -- jobs.key
  shown TEXT, -- the spec as people are shown it, without what is large; NULL: as it is. Stands first, so that reading it reads nothing of the other
  spec TEXT NOT NULL -- JSON as it was received; carries priority, labels and all else that no query asks for
) STRICT;
INSERT INTO "specs" VALUES(1,NULL,'{"command": ["sh", "-c", "echo done; echo warned >&2"], "gpus": 1, "name": "done", "labels": {"team": "a"}}');
INSERT INTO "specs" VALUES(2,NULL,'{"command": ["sh", "-c", "echo $RANK"], "gpus": 3, "name": "gang"}');
INSERT INTO "specs" VALUES(3,NULL,'{"command": ["sh", "-c", "wc -c <large"], "gpus": 1, "files": [{"path": "large", "blob": "ce2f3100f958b98815a5a2ba92fb80c78ac83f3287245ad377ba12b7f9b3a19b"}], "name": "staged"}');
INSERT INTO "specs" VALUES(4,NULL,'{"command": ["sh", "-c", "echo \"{\\\"message\\\": \\\"no luck\\\"}\" > $TORCHELASTIC_ERROR_FILE; exit 3"], "gpus": 1, "name": "unlucky"}');
INSERT INTO "specs" VALUES(5,NULL,'{"command": ["sh", "-c", "echo attempt \"$GPUCTL_ATTEMPT\"; test \"$GPUCTL_ATTEMPT\" != 1 || sleep 1000"], "gpus": 1, "name": "canceled"}');
INSERT INTO "specs" VALUES(6,NULL,'{"command": ["sh", "-c", "echo attempt \"$GPUCTL_ATTEMPT\"; test \"$GPUCTL_ATTEMPT\" != 1 || sleep 1000"], "gpus": 3, "name": "running"}');
INSERT INTO "specs" VALUES(7,NULL,'{"command": ["sh", "-c", "echo attempt \"$GPUCTL_ATTEMPT\"; test \"$GPUCTL_ATTEMPT\" != 1 || sleep 1000"], "gpus": 1, "name": "alone"}');
INSERT INTO "specs" VALUES(8,NULL,'{"command": ["sh", "-c", "echo came"], "gpus": 3, "name": "waiting", "priority": 5, "time_limit_s": 600}');
INSERT INTO "specs" VALUES(9,NULL,'{"command": ["sh", "-c", "echo came"], "gpus": 1, "name": "behind"}');
CREATE TABLE tokens (
  id TEXT PRIMARY KEY, -- the part of the token that is no secret
  secret BLOB NOT NULL, -- SHA-256 of the rest
  role TEXT NOT NULL CHECK (CASE role WHEN 'none' THEN 1 WHEN 'node' THEN 1 WHEN 'user' THEN 1 WHEN 'admin' THEN 1 ELSE 0 END),
  owner TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL, -- 0: never
  revoked INTEGER NOT NULL CHECK (revoked IN (0, 1))
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX jobs_id ON jobs (key >> 10, id);
CREATE INDEX jobs_owner ON jobs (owner);
CREATE INDEX jobs_live ON jobs (key, state) WHERE CASE jobs.state WHEN 'QUEUED' THEN 1 WHEN 'STAGING' THEN 1 WHEN 'PLACED' THEN 1 WHEN 'RUNNING' THEN 1 END;
CREATE UNIQUE INDEX attempts_job ON attempts (job_key, number);
CREATE UNIQUE INDEX attempts_live ON attempts (job_key) WHERE state <> 'ENDED';
COMMIT;
