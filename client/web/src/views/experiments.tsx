// SPDX-License-Identifier: Apache-2.0
// The list of experiments.

import { experiments } from "../controller/api";
import { useCrumbs, useRenewed } from "../parts/renew";
import { Table } from "../parts/table";
import { moment } from "../parts/words";

export function ExperimentsView() {
  useCrumbs();
  const [all] = useRenewed("experiments", async (signal) => ({ value: await experiments(signal), more: false }));
  const rows = all?.map((one) => [
    <a href={`#/experiments/${one.experiment_id}`}>{one.name}</a>,
    moment(one.creation_time),
    moment(one.last_update_time),
  ]);
  return (
    <section>
      <h1>Experiments</h1>
      {rows && <Table titles={["Experiment", "Made", "Changed"]} rows={rows} keys={all!.map((one) => one.experiment_id)} />}
    </section>
  );
}
