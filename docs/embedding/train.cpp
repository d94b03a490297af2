// Trains on vectors of the program's own and predicts by the result, all in memory.
#include <iostream>

#include "churn.h" // trains: --emit=lib
#include "gnnc.hpp"
#include "score.h" // predicts: --emit=infer

// A ring of customers; who leaves is told by the first of two features.
static gnnc::graph ring(std::int64_t n) {
    std::vector<float> x;
    std::vector<std::int32_t> leaves;
    std::vector<std::int8_t> split;
    std::vector<std::int64_t> from, to;
    for (std::int64_t i = 0; i < n; i++) {
        const int side = static_cast<int>(i * 2 / n);
        x.push_back(side ? 1.0f : -1.0f);
        x.push_back(static_cast<float>(i % 5));
        leaves.push_back(side);
        split.push_back(static_cast<std::int8_t>(1 + i % 3));
        from.push_back(i);
        to.push_back((i + 1) % n);
    }
    gnnc::graph g;
    g.nodes("customer", n).edges("calls", "customer", "customer", from, to);
    g.column("customer", "x", GNNC_COL_FLOAT, x, 2)
        .column("customer", "leaves", GNNC_COL_CLASS, leaves);
    g.column("customer", "split", GNNC_COL_SPLIT, split);
    return g.commit();
}

int main() try {
    const gnnc::graph g = ring(300);
    gnnc::trainer t(churn_program);
    t.set("epochs", std::int64_t{50}).set("lr", 0.05).load(g);
    while (!t.done()) t.epoch();
    t.keep_best();
    gnnc::session s(gnnc::model(score_program, t.weights()), g);
    const auto score = s.predict({10, 290}); // [2, 2]
    std::cout << "accuracy above 0.9: " << (t.metric("accuracy.test") > 0.9 ? "yes" : "no") << "\n"
              << "customer 10 " << (score[1] > score[0] ? "leaves" : "stays") << ", customer 290 "
              << (score[3] > score[2] ? "leaves" : "stays") << "\n";
    return 0;
} catch (const gnnc::error &e) {
    std::cerr << "train_cpp: " << e.what() << "\n";
    return 1;
}
