# SPDX-License-Identifier: Apache-2.0
"""scikit-learn on many nodes: joblib hands its work to Ray's tasks, inside of ray_launch."""

from __future__ import annotations

import pytest

from running import Run

pytestmark = pytest.mark.long


@pytest.mark.thorough
def test_a_search_of_scikit_learn_runs_on_all_nodes_by_joblib_on_ray(pair_notebook: Run) -> None:
    pair_notebook("""
        from serverless_gpu.ray import ray_launch

        @ray_launch(gpus=2, remote=True)
        def drive():
            import os

            import joblib
            from ray.util.joblib import register_ray
            from sklearn.datasets import make_classification
            from sklearn.model_selection import GridSearchCV
            from sklearn.tree import DecisionTreeClassifier

            register_ray()
            x, y = make_classification(200, random_state=0)
            search = GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2, 4, 8]}, cv=5)
            alone = search.fit(x, y).best_score_
            with joblib.parallel_backend("ray", ray_remote_args={"num_cpus": 1}):
                together = search.fit(x, y).best_score_
                places = joblib.Parallel(batch_size=1)(joblib.delayed(os.getenv)("GPUCTL_NODE") for _ in range(40))
            return alone, together, sorted(set(places))

        (alone, together, places), other = drive.distributed()
        assert alone == together and other is None, (alone, together)
        assert places == ["node0", "node1"], places
        """)
