// Two threads that predict, over one graph and one model.
//
//     predict_cpp DATA WEIGHTS
#include <iostream>
#include <thread>

#include "gcn.h" // gcn_program, written by gnnc
#include "gnnc.hpp"

// The sum of what is predicted of every second row: one row a call, as requests come.
static double every_second(gnnc::session s, std::int64_t first) {
    double sum = 0;
    for (std::int64_t i = first; i < s.rows(); i += 2)
        for (float score : s.predict({i})) sum += score;
    return sum;
}

int main(int argc, char **argv) try {
    if (argc != 3) return 2;
    gnnc::session s(gnnc::model(gcn_program, argv[2]), gnnc::graph::read(argv[1]));
    double odd = 0;
    std::thread other(
        [&odd, copy = s.clone()]() mutable { odd = every_second(std::move(copy), 1); });
    const double even = every_second(s.clone(), 0);
    other.join();
    std::cout << s.rows() << " rows of " << s.width() << " scores";
    std::cout << (odd + even == odd + even ? ", all of them numbers\n" : "\n");
    try {
        s.predict({s.rows()});
    } catch (const gnnc::error &e) {
        std::cout << e.what() << "\n";
    }
    return 0;
} catch (const gnnc::error &e) {
    std::cerr << "predict_cpp: " << e.what() << "\n";
    return 1;
}
